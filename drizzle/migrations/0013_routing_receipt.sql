ALTER TABLE `backend_minute` ADD `expected_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `backend_minute` ADD `regret_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_log` ADD `expected_cached_tokens` integer;