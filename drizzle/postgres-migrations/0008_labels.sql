-- Triggers and functions: c95b3f046f0ae7d7
CREATE TABLE "key_labels" (
	"key_id" bigint NOT NULL,
	"from_day" bigint NOT NULL,
	"owner" text,
	"tags" text,
	CONSTRAINT "key_labels_key_id_from_day_pk" PRIMARY KEY("key_id","from_day")
);
