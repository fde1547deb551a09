ALTER TABLE `turns` ADD `assistant` text;--> statement-breakpoint
ALTER TABLE `turns` ADD `passages` text;