CREATE TABLE `conversations` (
	`id` text PRIMARY KEY NOT NULL,
	`history_id` text NOT NULL,
	`model_id` text NOT NULL,
	`owner` text NOT NULL,
	`user_id` text NOT NULL,
	`protocol` text NOT NULL,
	`title` text NOT NULL,
	`turns` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `conversations_owner` ON `conversations` (`owner`,`user_id`,`updated_at`);--> statement-breakpoint
CREATE INDEX `conversations_user` ON `conversations` (`user_id`,`updated_at`);--> statement-breakpoint
CREATE INDEX `conversations_updated` ON `conversations` (`updated_at`);--> statement-breakpoint
CREATE INDEX `conversations_expiry` ON `conversations` (`expires_at`);--> statement-breakpoint
CREATE TABLE `turns` (
	`conversation_id` text NOT NULL,
	`turn` integer NOT NULL,
	`question` text NOT NULL,
	`standalone` text,
	`answer` text NOT NULL,
	`finish_reason` text NOT NULL,
	`citations` text NOT NULL,
	`usage` text NOT NULL,
	`timings` text NOT NULL,
	`trace` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`conversation_id`, `turn`)
);
--> statement-breakpoint
CREATE INDEX `turns_expiry` ON `turns` (`expires_at`);--> statement-breakpoint
CREATE TABLE `usage` (
	`day` text NOT NULL,
	`owner` text NOT NULL,
	`model_id` text NOT NULL,
	`turns` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	PRIMARY KEY(`day`, `owner`, `model_id`)
);
--> statement-breakpoint
CREATE INDEX `usage_model` ON `usage` (`model_id`,`day`);--> statement-breakpoint
ALTER TABLE `api_keys` ADD `limits` text;