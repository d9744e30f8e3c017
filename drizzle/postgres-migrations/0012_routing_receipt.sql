ALTER TABLE "backend_minute" ADD COLUMN "expected_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "backend_minute" ADD COLUMN "regret_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "request_log" ADD COLUMN "expected_cached_tokens" bigint;