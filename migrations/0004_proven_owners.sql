DROP INDEX `conversations_owner`;--> statement-breakpoint
ALTER TABLE `conversations` ADD `proof` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `conversations_proof` ON `conversations` (`proof`,`owner`,`updated_at`) WHERE proof <> '';--> statement-breakpoint
CREATE INDEX `conversations_owner` ON `conversations` (`owner`,`updated_at`);--> statement-breakpoint
-- A key that fixes its user asked for nobody else. Of other users that are named it is not known who claimed them.
UPDATE `conversations` SET `proof` = 'user:' || `user_id` WHERE `user_id` <> '' AND EXISTS (
	SELECT 1 FROM `api_keys` WHERE CAST(`api_keys`.`id` AS TEXT) = `conversations`.`owner`
		AND json_extract(`api_keys`.`limits`, '$.user_id') = `conversations`.`user_id`
);
