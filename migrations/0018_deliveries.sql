CREATE TABLE `deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`webhook` text NOT NULL,
	`event` text NOT NULL,
	`conversation_id` text,
	`turn` integer,
	`data` text NOT NULL,
	`created_at` integer NOT NULL,
	`tries` integer NOT NULL,
	`next_at` integer,
	`delivered_at` integer,
	`outcome` text
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `deliveries_due` ON `deliveries` (`next_at`) WHERE next_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `deliveries_conversation` ON `deliveries` (`conversation_id`) WHERE conversation_id IS NOT NULL;
