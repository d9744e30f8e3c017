/** The JSON Schema keywords that our document uses. */
export interface JsonSchema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  minimum?: number;
  maximum?: number;
  format?: string;
}

interface Operation {
  responses: Record<string, { content: Record<string, { schema: JsonSchema }> }>;
}

export interface Document {
  paths: Record<string, Record<string, Operation>>;
}

const formats: Record<string, RegExp> = {
  date: /^\d{4}-\d\d-\d\d$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+09:00$/,
};

/** @returns one sentence for each difference from the document */
export function problemsOfResponse(
  document: Document,
  {
    method,
    path,
    status,
    contentType,
    text,
  }: Record<"method" | "path" | "contentType" | "text", string> & { status: number },
): string[] {
  const verb = method === "HEAD" ? "get" : method.toLowerCase();
  const operation = document.paths[templateOf(path)]?.[verb];
  if (operation === undefined) return status === 404 || status === 405 ? [] : [`${method} ${path} is not documented`];
  const response = operation.responses[status];
  if (response === undefined) return [`${method} ${path} may not have status ${status}`];
  if (method === "HEAD" || status === 304) return [];
  const [type, content] = Object.entries(response.content)[0] ?? [];
  if (type === undefined || content === undefined) return [`${method} ${path} ${status} has no content`];
  if (!contentType.startsWith(type)) return [`${method} ${path} ${status} is ${contentType}, not ${type}`];
  const value: unknown = type === "application/json" ? JSON.parse(text) : text;
  return problems(content.schema, value, `${method} ${path} ${status}`);
}

const templateOf = (path: string) =>
  path
    .replace(/\?.*$/, "")
    .replace(/(.)\/+$/, "$1")
    .replace(/^\/api\/(me\/keys|keys|teams|users|in-flight|sessions|tokens)\/[^/]+(?=$|\/rotate$)/, "/api/$1/{id}")
    .replace(/^\/api\/backends\/[^/]+$/, "/api/backends/{name}");

function problems(schema: JsonSchema, value: unknown, at: string): string[] {
  if (schema.anyOf !== undefined)
    return schema.anyOf.some((one) => problems(one, value, at).length === 0) ? [] : [`${at} is none of anyOf`];
  const types = [schema.type ?? typeOf(value)].flat();
  if (!types.includes(typeOf(value)) && !(types.includes("number") && typeOf(value) === "integer"))
    return [`${at} is ${typeOf(value)}, not ${types.join(" or ")}`];
  if ("const" in schema && schema.const !== value) return [`${at} is not ${JSON.stringify(schema.const)}`];
  if (schema.enum !== undefined && !schema.enum.includes(value)) return [`${at} is not in its enum`];
  if (typeof value === "number" && !(value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)))
    return [`${at} is out of range`];
  if (typeof value === "string" && schema.format !== undefined && formats[schema.format]?.test(value) !== true)
    return [`${at} is not a valid ${schema.format}`];
  if (Array.isArray(value))
    return value.flatMap((item, index) => problems(schema.items ?? {}, item, `${at}[${index}]`));
  if (typeof value === "object" && value !== null) return problemsOfObject(schema, value, at);
  return [];
}

/** Stricter than JSON Schema: an undocumented field may be an internal one that leaked. */
function problemsOfObject({ properties, required = [] }: JsonSchema, value: object, at: string): string[] {
  if (properties === undefined) return [];
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name} is missing`);
  const wrong = Object.entries(value).flatMap(([name, field]) => {
    const schema = properties[name];
    return schema === undefined ? [`${at}.${name} is not documented`] : problems(schema, field, `${at}.${name}`);
  });
  return [...missing, ...wrong];
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
