ALTER TABLE `collections` ADD `engine_config` text;--> statement-breakpoint
ALTER TABLE `collections` ADD `sealed_credentials` text;