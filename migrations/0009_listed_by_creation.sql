CREATE INDEX `conversations_proof_created` ON `conversations` (`proof`,`owner`,`created_at`) WHERE proof <> '';--> statement-breakpoint
CREATE INDEX `conversations_user_created` ON `conversations` (`user_id`,`created_at`) WHERE user_id <> '';--> statement-breakpoint
CREATE INDEX `conversations_owner_user` ON `conversations` (`owner`,`user_id`,`updated_at`) WHERE user_id <> '';--> statement-breakpoint
CREATE INDEX `conversations_owner_user_created` ON `conversations` (`owner`,`user_id`,`created_at`) WHERE user_id <> '';