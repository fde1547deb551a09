CREATE TABLE `aliases` (
	`name` text PRIMARY KEY NOT NULL,
	`collection_name` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`prefix` text NOT NULL,
	`hash` text NOT NULL,
	`sealed_value` text,
	`description` text NOT NULL,
	`actions` text NOT NULL,
	`collections` text NOT NULL,
	`expires_at` integer NOT NULL,
	`autodelete` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_hash_unique` ON `api_keys` (`hash`);--> statement-breakpoint
CREATE INDEX `api_keys_prefix` ON `api_keys` (`prefix`);--> statement-breakpoint
CREATE TABLE `collections` (
	`name` text PRIMARY KEY NOT NULL,
	`object_id` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `collections_object_id_unique` ON `collections` (`object_id`);--> statement-breakpoint
CREATE TABLE `conversation_models` (
	`id` text PRIMARY KEY NOT NULL,
	`config` text NOT NULL,
	`sealed_api_key` text,
	`masked_api_key` text,
	`ttl` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`history_id` text NOT NULL,
	`document_id` text NOT NULL,
	`conversation_id` text NOT NULL,
	`model_id` text NOT NULL,
	`role` text NOT NULL,
	`message` text NOT NULL,
	`timestamp` integer NOT NULL,
	PRIMARY KEY(`history_id`, `document_id`)
);
--> statement-breakpoint
CREATE INDEX `messages_conversation` ON `messages` (`conversation_id`,`timestamp`);--> statement-breakpoint
CREATE INDEX `messages_expiry` ON `messages` (`model_id`,`timestamp`);