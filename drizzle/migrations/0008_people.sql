-- Triggers and functions: 36985c7778d786f3
ALTER TABLE `keys` ADD `user_id` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `signed_in_at` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `refresh_token` text;--> statement-breakpoint
ALTER TABLE `subjects` ADD `refresh_checked_at` integer;--> statement-breakpoint
ALTER TABLE `subjects` ADD `team_by_provider` integer DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE `sessions` ADD `user_id` integer;--> statement-breakpoint
ALTER TABLE `sessions` ADD `role` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `provider_sid` text;