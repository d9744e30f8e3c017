-- Triggers and functions: 36985c7778d786f3
ALTER TABLE `request_log` ADD `user_id` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `source` text;--> statement-breakpoint
ALTER TABLE `subjects` ADD `external` text;--> statement-breakpoint
ALTER TABLE `subjects` ADD `key_id` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `team_id` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `same_as` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `is_active` integer DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE `subjects` ADD `is_kept` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `subjects` ADD `last_seen_at` integer;--> statement-breakpoint
CREATE UNIQUE INDEX `subjects_external` ON `subjects` (`source`,`external`);--> statement-breakpoint
CREATE INDEX `subjects_key` ON `subjects` (`key_id`);