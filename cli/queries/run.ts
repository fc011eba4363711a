/** `causeway query ...`: reads the flags, asks the node, prints the answer. */
import type { CommandContext } from "../command-context.js";
import { CliError } from "../errors.js";
import { readChainOrigin } from "../home/network/chain-origin.js";
import { homePaths } from "../home/home.js";
import { cometRpcUrl, evmRpcUrl } from "../probe/node-status.js";
import { assertOwnNode } from "../probe/own-node.js";
import { showValue } from "../../runtime/config/config-toml.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import { consensusAddressIn } from "./consensus-address.js";
import { queryNode, type QueryTarget } from "./node-query.js";
import { yamlLines } from "./output.js";
import type { QueryCommand } from "./query-command.js";

/** Flags of every query, as text. */
export interface QueryFlags {
  readonly node?: string;
  readonly height?: string;
  readonly output?: string;
  readonly [flag: string]: unknown;
}

/** Flags of lists: name of the option and field of `PageRequest`. */
const PAGE_FIELDS = [
  ["pageKey", "key"],
  ["offset", "offset"],
  ["limit", "limit"],
  ["countTotal", "count_total"],
  ["reverse", "reverse"],
] as const;

/** Transactions on a page of `query txs`, as in the SDK (`query.DefaultLimit`). */
const TXS_LIMIT = 100;

/** Most that a node puts on a page (D16). */
const MAX_LIMIT = 1_000;

/** A command of the table. */
export async function runQuery(
  context: CommandContext,
  command: QueryCommand,
  values: readonly (string | undefined)[],
  flags: QueryFlags,
): Promise<number> {
  const fields: Record<string, string> = {};
  for (const [index, argument] of (command.arguments ?? []).entries()) {
    const value = values[index];
    const field = argument.replace(/[[\]]/g, "");
    if (value === undefined) continue;
    fields[field] = field === "cons_address" ? consensusAddressIn(value) : value;
  }
  for (const [flag, field] of command.fields ?? []) {
    const value = flags[flag];
    if (typeof value === "string") fields[field] = value;
  }
  const [instead, other] = command.instead ?? [];
  const isOther = instead !== undefined && other !== undefined && fields[instead] !== undefined;
  // The other method gives one thing; that of a height has pages, too.
  if (command.isPaged === true && !(isOther && instead !== "height")) {
    Object.assign(fields, pageFields(flags));
  }
  const path = isOther ? other : command.path;
  const answer = await queryNode(loadDescriptors(), path, fields, await targetOf(context, flags));
  const shown = command.shown?.map(([name, ...members]) => [
    name,
    members.reduce(memberOf, answer),
  ]);
  print(context, flags, shown === undefined ? answer : Object.fromEntries(shown));
  return 0;
}

/** `query txs`: the SDK's `SearchTxsResult`. */
export async function runQueryTxs(context: CommandContext, flags: QueryFlags): Promise<number> {
  const conditions = conditionsOf(flags);
  const page = wholeNumber(flags, "page", 1);
  const limit = limitOf(flags, TXS_LIMIT, MAX_LIMIT);
  const order = textFlag(flags, "order_by");
  const path = "/cosmos.tx.v1beta1.Service/GetTxsEvent";
  const fields = {
    query: conditions,
    page: `${page}`,
    limit: `${limit}`,
    ...(order !== undefined && { order_by: orderOf(order) }),
  };
  const answer = await queryNode(loadDescriptors(), path, fields, await targetOf(context, flags));
  const txs = memberOf(answer, "tx_responses");
  const total = Number(memberOf(answer, "total"));
  print(context, flags, {
    total_count: `${total}`,
    count: `${Array.isArray(txs) ? txs.length : 0}`,
    page_number: `${page}`,
    page_total: `${Math.ceil(total / limit)}`,
    limit: `${limit}`,
    txs,
  });
  return 0;
}

/**
 * `--query` as it is, `--events 'a.b=c&d.e=f'` with the values quoted, as the SDK quotes them.
 * @throws USAGE
 */
function conditionsOf(flags: QueryFlags): string {
  const query = textFlag(flags, "query");
  const events = textFlag(flags, "events");
  if ((query === undefined) === (events === undefined)) {
    throw new CliError("USAGE", "query txs needs either --events or --query.");
  }
  if (events === undefined) return query ?? "";
  const conditions = events.replace(/^'(.*)'$/, "$1").split("&");
  return conditions
    .map((condition) => condition.trim())
    .map(quoted)
    .join(" AND ");
}

function quoted(condition: string): string {
  const match = /^([\w-]+\.[\w.-]+)\s*(<=|>=|=|<|>)\s*(.+)$/.exec(condition);
  const [, tag = "", operator = "", value = ""] = match ?? [];
  if (match === null) {
    const form = "{eventType}.{eventAttribute}={value}";
    throw new CliError("USAGE", `--events has "${condition}", which is not of the form ${form}.`);
  }
  const isLiteral = tag === "tx.height" || operator !== "=" || /^'.*'$/.test(value);
  return `${tag}${operator}${isLiteral ? value : `'${value}'`}`;
}

function orderOf(order: string): string {
  if (/^(asc|desc)$/i.test(order)) return `ORDER_BY_${order.toUpperCase()}`;
  throw new CliError("USAGE", `--order_by is asc or desc, not "${order}".`);
}

function pageFields(flags: QueryFlags): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  for (const [flag, field] of PAGE_FIELDS) {
    const value = flags[flag];
    if (value !== undefined)
      fields[`pagination.${field}`] = `${value as string | number | boolean}`;
  }
  assertPageKey(textFlag(flags, "pageKey") ?? "");
  const page = wholeNumber(flags, "page", 1);
  if (page > 1) {
    if (flags["offset"] !== undefined) {
      throw new CliError("USAGE", "--page and --offset cannot be used together.");
    }
    const limit = limitOf(flags, 100, MAX_LIMIT);
    // Who names none is told the total.
    if (flags["limit"] !== undefined) fields["pagination.limit"] = `${limit}`;
    fields["pagination.offset"] = `${(page - 1) * limit}`;
  }
  return fields;
}

/** Base64 as a page gives it, in either alphabet: what decodes only by leaving bits out is none. */
function assertPageKey(key: string): void {
  const digits = key.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  const bytes = Buffer.from(digits, "base64");
  const canonical = bytes.toString("base64");
  if (digits === canonical.replace(/=+$/, "") && (key === "" || bytes.length > 0)) return;
  throw new CliError(
    "USAGE",
    `--page-key must be the pagination.next_key of the page before, in base64, not "${key}".`,
  );
}

/**
 * Which node is asked, as of which height. Without --node it is the home's own, and no other that
 * listens where it does: local chains all have one chain id, so a transaction would be taken there.
 * @throws USAGE also without --node on a home that has no node of its own: whatever listens on the
 *   usual port of this machine is of another chain; NODE_FOREIGN
 */
export async function targetOf(context: CommandContext, flags: QueryFlags): Promise<QueryTarget> {
  const { node } = flags;
  if (node === undefined && readChainOrigin(homePaths(context.home))?.kind === "remote") {
    const message = `--node must name the node's consensus RPC: ${context.home} has no node of its own.`;
    throw new CliError("USAGE", message);
  }
  const url = node === undefined ? cometRpcUrl(context) : node.replace(/^tcp:/, "http:");
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CliError(
      "USAGE",
      `--node must be a URL such as tcp://127.0.0.1:26657, not ${showValue(node)}.`,
    );
  }
  const height = wholeNumber(flags, "height", 0);
  if (node === undefined) await assertOwnNode(context.home, evmRpcUrl(context), context.signal);
  return { url, height, signal: context.signal };
}

/** A flag that was given, and is not empty. */
export function textFlag(flags: QueryFlags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * A flag that is a whole number, at least 1 where its default is.
 * @throws USAGE
 */
export function wholeNumber(flags: QueryFlags, name: string, absent: number): number {
  const text = textFlag(flags, name);
  if (text === undefined) return absent;
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= Math.min(absent, 1)) return value;
  throw new CliError("USAGE", `--${name} must be a whole number, not "${text}".`);
}

/**
 * Items on a page whose number is counted by it: whoever was given fewer would leave out what is between.
 * @param most what a node puts on one page
 * @throws USAGE
 */
export function limitOf(flags: QueryFlags, absent: number, most: number): number {
  const limit = wholeNumber(flags, "limit", absent);
  if (limit <= most) return limit;
  throw new CliError("USAGE", `--limit is at most ${most}.`);
}

/** A member of a JSON object; undefined where there is none. */
export function memberOf(value: unknown, name: string): unknown {
  const isObject = typeof value === "object" && value !== null;
  return isObject && name in value ? Reflect.get(value, name) : undefined;
}

/** Prints an answer in the form that is asked for. Throws USAGE. */
export function print(context: CommandContext, flags: QueryFlags, answer: unknown): void {
  const { output = context.json ? "json" : "text" } = flags;
  if (output === "json") context.print(JSON.stringify(answer));
  else if (output === "text") for (const line of yamlLines(answer)) context.print(line);
  else throw new CliError("USAGE", `--output is text or json, not "${output}".`);
}
