import { discouragesHan } from "../../src/proxy/rewrite/language.ts";
import { hanGuardPrefix, maximumEffortPrefix } from "../../src/proxy/rewrite/rewrite.ts";
import type { RewriteSettings } from "./rewrite-rules.ts";

type Value = Record<string, unknown>;

const isObject = (value: unknown): value is Value =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Applies the rules to the parsed body, which loses bytes: what a rewritten body must parse to. */
export function rewriteByValue(path: string, body: string, rules: RewriteSettings): unknown {
  const root: unknown = JSON.parse(body);
  if (!isObject(root)) return root;
  const model = typeof root["model"] === "string" ? resolveByValue(root["model"], rules) : undefined;
  if (model !== undefined) root["model"] = model.name;
  const thinking = path === "/v1/messages" && isObject(root["thinking"]) ? root["thinking"] : {};
  const budget = thinking["type"] === "disabled" ? 0 : (tokensOf(thinking["budget_tokens"]) ?? 0);
  capByValue(root, Array.from(body).length, budget, rules);
  const config = root["output_config"];
  const effort = isObject(config) ? config["effort"] : undefined;
  const isMax = effort === "max" || effort === "xhigh";
  const mode = model?.nonThinking === true ? "none" : isMax ? "max" : "high";
  const family = isFamilyLive(rules);
  const given = root["chat_template_kwargs"];
  const own = isObject(given) ? ("thinking" in given ? given["thinking"] : given["enable_thinking"]) : undefined;
  const prefixes = family && mode === "max" && own !== false ? [maximumEffortPrefix] : [];
  if (family && /chat|messages|responses/.test(path)) fillByValue(root, mode);
  if (/chat|messages/.test(path)) prefixByValue(root, path, prefixes, rules.hanGuard);
  if (/completions/.test(path) && isStream(root["stream"])) requestByValue(root, rules.forceStreamUsage);
  return root;
}

const isFamilyLive = ({ servedModel, reasoningModel }: RewriteSettings): boolean =>
  servedModel !== undefined && servedModel.toLowerCase() === reasoningModel?.toLowerCase();

function resolveByValue(submitted: string, rules: RewriteSettings): { name: string; nonThinking: boolean } {
  const { servedModel, rewriteUnknownModels, vendorPrefixes } = rules;
  if (servedModel === undefined) return { name: submitted, nonThinking: false };
  const [name, served] = [submitted, servedModel].map((one) => one.toLowerCase().replace(/(?:\[1m\])+$/, ""));
  if (name === undefined || name === served) return { name: servedModel, nonThinking: false };
  if (isFamilyLive(rules) && /-nonthink(?:ing)?$/.test(name)) return { name: servedModel, nonThinking: true };
  const isOurs = rewriteUnknownModels || vendorPrefixes.some((prefix) => name.startsWith(`${prefix}-`));
  return { name: isOurs ? servedModel : submitted, nonThinking: false };
}

function capByValue(root: Value, characters: number, budget: number, rules: RewriteSettings): void {
  for (const name of ["max_tokens", "max_completion_tokens", "max_output_tokens"]) {
    const asked = tokensOf(root[name]);
    if (asked === undefined) continue;
    const available = Math.max(1, rules.maxContextTokens - Math.floor(characters / 3) - 512);
    const limit = [Math.min(available, rules.maxOutputTokens), available].find((cap) => cap > budget) ?? Infinity;
    if (asked > limit) root[name] = typeof root[name] === "string" ? String(limit) : limit;
  }
}

function tokensOf(given: unknown): number | undefined {
  const asked = typeof given === "string" && /^[0-9]+$/.test(given) ? Number(given) : given;
  if (typeof asked !== "number" || asked <= 0 || (asked % 1 !== 0 && asked !== Infinity)) return undefined;
  return asked;
}

function fillByValue(root: Value, mode: "none" | "high" | "max"): void {
  const given = "chat_template_kwargs" in root ? root["chat_template_kwargs"] : {};
  if (!isObject(given)) return;
  const thinking = "enable_thinking" in given ? given["enable_thinking"] : mode !== "none";
  if (!("thinking" in given)) given["thinking"] = thinking;
  if (mode !== "none" && !("reasoning_effort" in given)) given["reasoning_effort"] = mode;
  root["chat_template_kwargs"] = given;
}

function prefixByValue(root: Value, path: string, prefixes: string[], hanGuard: boolean): void {
  const messages = root["messages"];
  if (!Array.isArray(messages) || messages.length === 0) return;
  const turns = messages.filter(isObject).map(({ role, content }) => ({ role: String(role), text: textOf(content) }));
  if ("system" in root) turns.unshift({ role: "system", text: textOf(root["system"]) });
  if (hanGuard && discouragesHan(turns)) prefixes.push(hanGuardPrefix);
  if (prefixes.length === 0) return;
  const prefix = prefixes.join("\n\n");
  if (path.includes("messages")) root["system"] = prefixed(root["system"], prefix);
  else if (isObject(messages[0]) && ["system", "developer"].includes(String(messages[0]["role"]))) {
    messages[0]["content"] = prefixed(messages[0]["content"], prefix);
  } else messages.unshift({ role: "system", content: prefix });
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  const texts = content.filter(isObject).filter(({ type }) => type === "text");
  return texts.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}

function prefixed(content: unknown, prefix: string): unknown {
  if (content === undefined || content === null || content === "") return prefix;
  if (typeof content === "string") return `${prefix}\n\n${content}`;
  return Array.isArray(content) ? [{ type: "text", text: `${prefix}\n\n` }, ...(content as unknown[])] : content;
}

const falseValues = new Set<unknown>([false, 0, "0", "f", "false", "n", "no", "off"]);
const lower = (value: unknown): unknown => (typeof value === "string" ? value.toLowerCase() : value);

function isStream(value: unknown): boolean {
  return value !== undefined && value !== null && !falseValues.has(lower(value));
}

function requestByValue(root: Value, force: RewriteSettings["forceStreamUsage"]): void {
  if (force === "off") return;
  const options = isObject(root["stream_options"]) ? root["stream_options"] : {};
  root["stream_options"] = options;
  options["include_usage"] = true;
  if (force === "continuous" && !("continuous_usage_stats" in options)) options["continuous_usage_stats"] = true;
}
