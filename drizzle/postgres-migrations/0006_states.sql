-- Triggers and functions: c95b3f046f0ae7d7
CREATE TABLE "states" (
	"process" text NOT NULL,
	"kind" text NOT NULL,
	"object" text NOT NULL,
	"since" bigint NOT NULL,
	"until" bigint,
	"seen_at" bigint NOT NULL,
	"what" text NOT NULL,
	"count" bigint,
	"silenced_until" bigint,
	"silenced_why" text,
	"silenced_by" text,
	"told" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "states_process_kind_object_since_pk" PRIMARY KEY("process","kind","object","since")
);
--> statement-breakpoint
CREATE TABLE "notices" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"created_at" bigint NOT NULL,
	"body" text NOT NULL,
	"tries" bigint NOT NULL,
	"next_at" bigint
);
