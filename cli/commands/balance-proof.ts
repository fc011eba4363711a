/** `causeway audit balance` and `causeway verify balance`: a balance with its proof, made and checked. */
import { resolve } from "node:path";
import { toChecksumAddress } from "../../chain/address.js";
import { atokenToToken } from "../../chain/units.js";
import { encodeBundle, MAX_BUNDLE_BYTES, parseBundle } from "../audit/balance/bundle.js";
import { collectBundle } from "../audit/balance/collect.js";
import { readProofFile, withProofSource } from "../audit/balance/proof-source.js";
import { type ProvenBalance, verifyBundle } from "../audit/balance/verify.js";
import { AUDIT_EXIT, AuditError } from "../audit/errors.js";
import { readAddressOption, readGenesisOption } from "../audit/options.js";
import type { AuditBalanceOptions, VerifyBalanceOptions } from "../audit/words.js";
import { type CommandContext, printJson } from "../command-context.js";
import { sentenceOf } from "../errors.js";
import { createNamedFile } from "../home/home-file.js";
import { shellWord } from "../shell-word.js";

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
      context.print(
        `  npm run causeway -- verify balance ${shellWord(file)} --genesis GENESIS_FILE`,
      );
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
    const genesis = readGenesisOption(options.genesis, context.home);
    const proven = await verifyBundle(
      parseBundle(await readProofFile(options.file, MAX_BUNDLE_BYTES)),
      genesis,
    );
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
  const address = readAddressOption("<address>", options.address);
  const text = await withProofSource(context, options, async (source) => {
    return encodeBundle(await collectBundle({ ...source, address }));
  });
  const genesis = readGenesisOption(options.genesis, context.home);
  const bundle = parseBundle(text);
  const proven = await verifyBundle(bundle, genesis);
  const file = resolve(
    options.out ?? `balance-${toChecksumAddress(address)}-${bundle.height}.json`,
  );
  if (!(await createNamedFile(file, text, FILE_MODE))) {
    throw new AuditError("BAD_OPTION", `${file} is there already: choose another with --out.`);
  }
  return { file, proven };
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
