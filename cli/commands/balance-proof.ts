/** `causeway audit balance` and `causeway verify balance`: a balance with its proof, made and checked. */
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { type Address, parseAddress, toChecksumAddress } from "../../chain/address.js";
import { atokenToToken } from "../../chain/units.js";
import { loadGenesis } from "../../node/settings/genesis.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { systemClock } from "../../runtime/process/clock.js";
import { createAuditNode } from "../audit/audit-node.js";
import { encodeBundle, MAX_BUNDLE_BYTES, parseBundle } from "../audit/balance/bundle.js";
import { collectBundle, headerSource } from "../audit/balance/collect.js";
import { type ProvenBalance, verifyBundle } from "../audit/balance/verify.js";
import { AuditError } from "../audit/errors.js";
import { badOption, readHeightOption, readUrlOption } from "../audit/options.js";
import type { AuditBalanceOptions, VerifyBalanceOptions } from "../audit/words.js";
import { type CommandContext, printJson } from "../command-context.js";
import { fileCause, sentenceOf } from "../errors.js";
import { createFileOnce } from "../home/home-file.js";
import { homePaths } from "../home/home.js";
import { loadKitConfig } from "../home/kit-config.js";
import { readNodeStatus } from "../probe/node-status.js";
import { AUDIT_EXIT } from "./audit.js";

/** The file holds nothing secret. */
const FILE_MODE = 0o644;

/** Collects the proof, checks it as a stranger would, and writes it. */
export async function runAuditBalance(
  context: CommandContext,
  options: AuditBalanceOptions & { readonly address: string },
  warn: (line: string) => void,
): Promise<number> {
  try {
    const { file, proven } = await writeProof(context, options);
    if (context.json) printJson(context, { ok: true, file, ...toWire(proven) });
    else {
      for (const line of formatProven(proven)) context.print(line);
      context.print(`Written to ${file}, and checked. Anybody checks it again, offline:`);
      context.print(`  npm run causeway -- verify balance ${file} --genesis GENESIS_FILE`);
    }
    return AUDIT_EXIT.clean;
  } catch (error) {
    context.signal.throwIfAborted();
    warn(`audit: ${sentenceOf(error)}`);
    return AUDIT_EXIT.cannotRun;
  }
}

/** Checks a file against the genesis. */
export async function runVerifyBalance(
  context: CommandContext,
  options: VerifyBalanceOptions & { readonly file: string },
  warn: (line: string) => void,
): Promise<number> {
  try {
    const genesis = loadGenesis(options.genesis ?? homePaths(context.home).genesis);
    const proven = await verifyBundle(parseBundle(await readBounded(options.file)), genesis);
    if (context.json) printJson(context, { ok: true, ...toWire(proven) });
    else for (const line of formatProven(proven)) context.print(line);
    return AUDIT_EXIT.clean;
  } catch (error) {
    const isFalse = error instanceof AuditError && error.code === "NOT_PROVEN";
    if (isFalse && context.json) printJson(context, { ok: false, reason: error.message });
    warn(`verify: ${sentenceOf(error)}`);
    return isFalse ? AUDIT_EXIT.difference : AUDIT_EXIT.cannotRun;
  }
}

async function writeProof(
  context: CommandContext,
  options: AuditBalanceOptions & { readonly address: string },
): Promise<{ readonly file: string; readonly proven: ProvenBalance }> {
  const { signal } = context;
  const address = readAddress(options.address);
  const height =
    options.height === "head" ? undefined : readHeightOption("--height", options.height);
  const { jsonRpcUrl, consensusUrl } = urlsOf(context, options);
  const genesis = loadGenesis(options.genesis ?? homePaths(context.home).genesis);
  const rpc = createJsonRpcClient({ url: jsonRpcUrl });
  try {
    const oldestHeight = async () => {
      const status = await readNodeStatus(consensusUrl, { clock: systemClock, signal });
      return Math.max(1, status.oldestHeight);
    };
    const contents = await collectBundle({
      node: createAuditNode(rpc, signal),
      headers: headerSource({ url: consensusUrl, oldestHeight, signal }),
      genesis,
      address,
      height,
      signal,
    });
    const text = encodeBundle(contents);
    const proven = await verifyBundle(parseBundle(text), genesis);
    const file = resolve(
      options.out ?? `balance-${toChecksumAddress(address)}-${contents.height}.json`,
    );
    if (!(await createFileOnce(file, text, FILE_MODE))) {
      throw new AuditError("BAD_OPTION", `${file} is there already: choose another with --out.`);
    }
    return { file, proven };
  } finally {
    rpc.close();
  }
}

function urlsOf(
  context: CommandContext,
  { node, consensus }: AuditBalanceOptions,
): { readonly jsonRpcUrl: string; readonly consensusUrl: string } {
  const home = node === undefined || consensus === undefined ? loadKitConfig(context) : undefined;
  const jsonRpcUrl = node ?? home?.endpoints.jsonRpcUrl;
  const consensusUrl = consensus ?? home?.endpoints.cometRpcUrl;
  if (jsonRpcUrl === undefined || consensusUrl === undefined) {
    const message = "This home uses somebody else's node: name its consensus RPC with --consensus.";
    throw new AuditError("BAD_OPTION", message);
  }
  return {
    jsonRpcUrl: readUrlOption("--node", jsonRpcUrl),
    consensusUrl: readUrlOption("--consensus", consensusUrl),
  };
}

function readAddress(text: string): Address {
  try {
    return parseAddress(text);
  } catch {
    throw badOption("<address>", text);
  }
}

async function readBounded(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > MAX_BUNDLE_BYTES) throw new RangeError("it is too long for a balance proof");
    return await readFile(file, "utf8");
  } catch (cause) {
    const message = `Cannot read ${file}: ${fileCause(cause)}.`;
    throw new AuditError("BUNDLE_UNREADABLE", message, { cause });
  }
}

function toWire({ balanceAtoken, nonce, signedAt, ...rest }: ProvenBalance) {
  return {
    ...rest,
    balanceAtoken: balanceAtoken.toString(),
    nonce: nonce.toString(),
    signedAt: { ...signedAt, totalPower: signedAt.totalPower.toString() },
  };
}

/** What is proven, for a terminal. */
function formatProven(proven: ProvenBalance): string[] {
  const { signedAt } = proven;
  const rows: readonly (readonly [string, string])[] = [
    ["account", `${proven.address} (${proven.bech32})`],
    ["balance", `${proven.balanceAtoken} atoken (${atokenToToken(proven.balanceAtoken)} TOKEN)`],
    ["nonce", proven.nonce.toString()],
    ["block", `${proven.height}, ${proven.blockHash}`],
    ["time", new Date(proven.timestampSeconds * 1_000).toISOString()],
    ["signed", `more than two thirds of ${signedAt.validators} validators, at ${signedAt.height}`],
    ["header", signedAt.hash],
    ["from genesis", `${proven.headers} ${proven.headers === 1 ? "header" : "headers"}`],
  ];
  return [...rows.map(([name, value]) => `  ${name.padEnd(14)}${value}`), "Proven."];
}
