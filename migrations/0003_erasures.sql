CREATE TABLE `erasures` (
	`id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `erasures_at` ON `erasures` (`at`);