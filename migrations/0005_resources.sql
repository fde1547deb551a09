CREATE TABLE `resources` (
	`kind` text NOT NULL,
	`id` text NOT NULL,
	`unique_name` text,
	`body` text NOT NULL,
	`sealed` text,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `id`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `resources_name` ON `resources` (`kind`,`unique_name`);