CREATE TABLE "backend_minute" (
	"minute" bigint NOT NULL,
	"backend" text NOT NULL,
	"request_count" bigint NOT NULL,
	"error_count" bigint NOT NULL,
	"input_tokens" bigint NOT NULL,
	"cached_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"streamed_tokens" bigint NOT NULL,
	"streamed_us" bigint NOT NULL,
	"first_byte" text NOT NULL,
	CONSTRAINT "backend_minute_minute_backend_pk" PRIMARY KEY("minute","backend")
);
--> statement-breakpoint
CREATE TABLE "catalog_instances" (
	"name" text PRIMARY KEY NOT NULL,
	"file_hash" text NOT NULL,
	"seen_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "draining_backends" (
	"backend" text PRIMARY KEY NOT NULL,
	"since" bigint NOT NULL,
	"username" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "reconciliation_backend_day" (
	"day" bigint NOT NULL,
	"backend" text NOT NULL,
	"generated_tokens" bigint NOT NULL,
	"prompt_tokens" bigint NOT NULL,
	"counted_output_tokens" bigint NOT NULL,
	"counted_input_tokens" bigint NOT NULL,
	CONSTRAINT "reconciliation_backend_day_day_backend_pk" PRIMARY KEY("day","backend")
);
--> statement-breakpoint
ALTER TABLE "request_log" ADD COLUMN "reason" text;