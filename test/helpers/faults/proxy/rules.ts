/** What can go wrong with an answer, as rules of the HTTP proxy: of the wire, and of a node's view. */
import { chance } from "../../random.js";
import type { Call, CallEdit, EditCall, Exchange, Reply, Rule, WireFault } from "./http-proxy.js";

/** A fault of the wire at every request. */
export function always(fault: WireFault): Rule {
  return () => fault;
}

/** In this share of the requests, from 0 to 1. */
export function sometimes(share: number, ...faults: readonly WireFault[]): Rule {
  return (_exchange, random) => (chance(random, share) ? random.pick(faults) : undefined);
}

/** Only where one of these methods is called. */
export function on(methods: readonly string[], rule: Rule): Rule {
  return (exchange, random) =>
    exchange.calls.some(({ method }) => methods.includes(method))
      ? rule(exchange, random)
      : undefined;
}

/** Only the first so many requests that the rule is asked about. */
export function first(count: number, rule: Rule): Rule {
  let left = count;
  return (exchange, random) => {
    const fault = left > 0 ? rule(exchange, random) : undefined;
    if (fault !== undefined) left -= 1;
    return fault;
  };
}

/** Turn about: the first rule, then the next, and from the beginning again; undefined is the truth. */
export function inTurn(...rules: readonly (Rule | undefined)[]): Rule {
  let turn = 0;
  return (exchange, random) => rules[turn++ % rules.length]?.(exchange, random);
}

/** Calls edited one by one; not asked for what is no JSON-RPC. */
export function editing(name: string, edit: EditCall): Rule {
  return ({ calls }) => (calls.length === 0 ? undefined : { kind: "calls", name, edit });
}

/** Replies of one method are others. */
export function replying(name: string, method: string, reply: (call: Call) => Reply): Rule {
  return editing(name, (call) => (call.method === method ? { reply: reply(call) } : undefined));
}

/** The faults of the wire after which nobody knows whether the node has the bytes. */
export const UNKNOWN_OUTCOME: readonly WireFault[] = [
  { kind: "reset before" },
  { kind: "reset after" },
  { kind: "hang before" },
  { kind: "hang after" },
];

/** What balancers answer in a node's place. */
export const BALANCER: readonly WireFault[] = [429, 502, 503, 504].map((status) => ({
  kind: "status",
  status,
  text: `<html><body>${status}</body></html>`,
}));

/** Bodies that are no answer: a page, half of one, another's, not in order, and one too long. */
export const BROKEN_BODIES: readonly WireFault[] = [
  { kind: "body", name: "html", change: () => "<html><body>Welcome to nginx!</body></html>" },
  { kind: "body", name: "truncated", change: (body) => body.slice(0, body.length / 2) },
  { kind: "body", name: "wrong id", change: (body) => shiftIds(body) },
  { kind: "body", name: "reordered", change: (body) => reverse(body) },
  { kind: "body", name: "empty", change: () => "" },
  { kind: "body", name: "null", change: () => "null" },
];

/** A body that is longer than a client takes. */
export const GIANT_BODY: WireFault = { kind: "giant", sizeBytes: 80 << 20 };

/** Every fault of the wire. */
export const WIRE_FAULTS: readonly WireFault[] = [
  ...UNKNOWN_OUTCOME,
  ...BALANCER,
  ...BROKEN_BODIES,
];

/**
 * A node as it was `behind` blocks ago, or that stands at one height: heads, states, receipts and
 * counts, all of that moment. The Data API has no newer block either.
 */
export function stale(options: { readonly behind: number } | { readonly at: number }): Rule {
  const heightOf = async (ask: (call: Call) => Promise<Reply>): Promise<number> => {
    if ("at" in options) return options.at;
    const { result } = await ask({ method: "eth_blockNumber", params: [] });
    return Math.max(0, Number(result) - options.behind);
  };
  const calls = editing("stale", async (call, ask) => staleEdit(call, await heightOf(ask)));
  return (exchange, random) =>
    exchange.path === "/block" && "at" in options
      ? staleBlock(exchange, options.at)
      : calls(exchange, random);
}

function staleBlock({ body }: Exchange, height: number): WireFault | undefined {
  const identifier: unknown = Reflect.get(Object(body), "block_identifier");
  if (Number(Reflect.get(Object(identifier), "index")) <= height) return undefined;
  const text = JSON.stringify({ code: 202, message: "block above the tip", retriable: true });
  return { kind: "status", status: 500, text };
}

function staleEdit(call: Call, height: number): CallEdit | undefined {
  const { method, params } = call;
  const at = `0x${height.toString(16)}`;
  const isAbove = (tag: unknown): boolean => {
    const isNumber = typeof tag === "string" && tag.startsWith("0x") && tag.length < 20;
    return tag === "latest" || tag === "pending" || (isNumber && Number(tag) > height);
  };
  switch (method) {
    case "eth_blockNumber":
      return { reply: { result: at } };
    case "eth_getBlockByNumber": {
      if (!isAbove(params[0])) return undefined;
      const isTag = params[0] === "latest" || params[0] === "pending";
      return isTag ? { call: { method, params: [at, params[1]] } } : { reply: { result: null } };
    }
    case "eth_getTransactionReceipt":
    case "eth_getTransactionByHash":
      return { change: (reply) => (isAbove(blockOf(reply)) ? { result: null } : reply) };
    case "eth_getBalance":
    case "eth_getTransactionCount":
    case "eth_getCode": {
      const [address, tag] = params;
      if (!isAbove(tag)) return undefined;
      if (tag === "latest" || tag === "pending") return { call: { method, params: [address, at] } };
      return { reply: { error: { code: -32_000, message: "header not found" } } };
    }
    default:
      return undefined;
  }
}

function blockOf({ result }: Reply): unknown {
  return Reflect.get(Object(result), "blockNumber");
}

/** A method's result is another; errors stay. */
export function changing(name: string, method: string, change: (result: unknown) => unknown): Rule {
  return editing(name, (call) =>
    call.method === method
      ? {
          change: (reply) => (reply.error === undefined ? { result: change(reply.result) } : reply),
        }
      : undefined,
  );
}

function shiftIds(body: string): string {
  const shift = (entry: unknown): unknown => ({
    ...Object(entry),
    id: Number(Reflect.get(Object(entry), "id")) + 1_000_000,
  });
  return withJson(body, (value) => (Array.isArray(value) ? value.map(shift) : shift(value)));
}

function reverse(body: string): string {
  return withJson(body, (value) => (Array.isArray(value) ? value.toReversed() : value));
}

function withJson(body: string, change: (value: unknown) => unknown): string {
  return JSON.stringify(change(JSON.parse(body)));
}
