// drizzle-kit finds tables by the exports of a file.
const { sqliteColumns } = require("../src/store/schema/columns.ts");
const { defineTables } = require("../src/store/schema/schema.ts");
module.exports = defineTables(sqliteColumns);
