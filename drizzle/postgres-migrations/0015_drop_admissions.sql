DROP TABLE "admissions" CASCADE;--> statement-breakpoint
DROP TABLE "key_seconds" CASCADE;