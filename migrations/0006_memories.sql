ALTER TABLE `conversations` ADD `details` text;--> statement-breakpoint
CREATE INDEX `conversations_created` ON `conversations` (`created_at`);--> statement-breakpoint
CREATE INDEX `conversations_owner_created` ON `conversations` (`owner`,`created_at`);