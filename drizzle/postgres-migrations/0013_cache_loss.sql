ALTER TABLE "request_log" ADD COLUMN "conversation" bigint;--> statement-breakpoint
ALTER TABLE "request_log" ADD COLUMN "cache_loss" text;