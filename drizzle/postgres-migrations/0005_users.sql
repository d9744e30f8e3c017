-- Triggers and functions: c95b3f046f0ae7d7
ALTER TABLE "request_log" ADD COLUMN "user_id" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "source" text;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "external" text;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "key_id" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "team_id" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "same_as" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "is_active" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "is_kept" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "last_seen_at" bigint;--> statement-breakpoint
CREATE UNIQUE INDEX "subjects_external" ON "subjects" USING btree ("source","external");--> statement-breakpoint
CREATE INDEX "subjects_key" ON "subjects" USING btree ("key_id");