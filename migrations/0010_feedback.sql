CREATE TABLE `feedback` (
	`conversation_id` text NOT NULL,
	`turn` integer NOT NULL,
	`giver` text NOT NULL,
	`rating` text,
	`score` integer,
	`comment` text NOT NULL,
	`reasons` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`conversation_id`, `turn`, `giver`)
);
--> statement-breakpoint
CREATE INDEX `feedback_rating` ON `feedback` (`rating`,`conversation_id`);--> statement-breakpoint
ALTER TABLE `conversations` ADD `failed_at` integer;--> statement-breakpoint
CREATE INDEX `conversations_failed` ON `conversations` (`updated_at`) WHERE failed_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `turns_unanswered` ON `turns` (`conversation_id`) WHERE citations = '[]' AND timings <> '{}';--> statement-breakpoint
CREATE VIRTUAL TABLE `turns_text` USING fts5(question, answer, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');--> statement-breakpoint
INSERT INTO `turns_text` (rowid, question, answer) SELECT rowid, question, answer FROM `turns` ORDER BY rowid;--> statement-breakpoint
CREATE TRIGGER `turns_inserted` AFTER INSERT ON `turns` BEGIN
	INSERT INTO `turns_text` (rowid, question, answer) VALUES (new.rowid, new.question, new.answer);
END;--> statement-breakpoint
CREATE TRIGGER `turns_deleted` AFTER DELETE ON `turns` BEGIN
	DELETE FROM `turns_text` WHERE rowid = old.rowid;
	DELETE FROM `feedback` WHERE conversation_id = old.conversation_id AND turn = old.turn;
END;--> statement-breakpoint
CREATE TRIGGER `turns_reworded` AFTER UPDATE OF `question`, `answer` ON `turns` BEGIN
	DELETE FROM `turns_text` WHERE rowid = old.rowid;
	INSERT INTO `turns_text` (rowid, question, answer) VALUES (new.rowid, new.question, new.answer);
END;--> statement-breakpoint
CREATE TRIGGER `turns_replaced` AFTER UPDATE OF `created_at` ON `turns` WHEN old.created_at <> new.created_at BEGIN
	DELETE FROM `feedback` WHERE conversation_id = old.conversation_id AND turn = old.turn;
END;
