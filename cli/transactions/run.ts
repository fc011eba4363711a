/** `causeway tx <module> <command>`: from the command line to a draft, a signature and a block. */
import { toBech32 } from "../../chain/address.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import { errorMessage } from "../../chain/errors.js";
import { sha256 } from "../../chain/hashes.js";
import {
  type Atoken,
  ATOKEN_PER_TOKEN,
  atokenToToken,
  BASE_DENOM,
  type GasPriceRational,
  parseMinimumGasPrices,
} from "../../chain/units.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { CommandContext } from "../command-context.js";
import { durationMs } from "../duration.js";
import { CliError } from "../errors.js";
import { print, targetOf } from "../queries/run.js";
import {
  assertSigner,
  compressedKey,
  type Draft,
  draftJson,
  packMessages,
  signDraft,
  signedJson,
  simulatedBytes,
} from "./document.js";
import { isConfirmed } from "./question.js";
import { findSigner, type Signer } from "./signer.js";
import type { TxCommand } from "./tx-command.js";
import { type BroadcastAnswer, TxNode } from "./tx-node.js";
import { amountIn, type Flags, flagText, integerIn, usage } from "./values.js";

/** Gas of a transaction that no node was asked about, as in the SDK. */
const DEFAULT_GAS = 200_000n;

/** What an estimate is multiplied by: state may be another one when the block comes. */
const DEFAULT_ADJUSTMENT = "1.2";

/**
 * Most that is signed as a fee where a node has named its price or its gas: a thousand times what a
 * full transaction costs at the price that nodes suggest.
 */
const MOST_UNNAMED_FEE_ATOKEN = ATOKEN_PER_TOKEN;

/** Longest wait for a block with `--broadcast-mode block`. */
const BLOCK_WAIT_MS = 60_000;

/** Beside the context: where warnings and what people are asked go. */
export interface TxContext extends CommandContext {
  readonly warn: (line: string) => void;
}

/** A command of the table. */
export async function runTx(
  context: TxContext,
  command: TxCommand,
  given: readonly string[],
  flags: Flags,
): Promise<number> {
  const { sender, args } = splitArguments(command, given);
  const from = flagText(flags, "from");
  const signer = findSigner(from ?? sender, keySources(context, flags));
  if (sender !== undefined && from !== undefined) {
    const named = findSigner(sender, keySources(context, flags));
    if (named.address !== signer.address) {
      const [first, flag] = [toBech32(named.address), toBech32(signer.address)];
      throw usage(`The first argument names the sender ${first}, and --from names ${flag}.`);
    }
  }
  const node = () => nodeOf(context, flags);
  const { home, warn } = context;
  const input = { args, flags, signer: signer.address, home, node, warn };
  const messages = await command.messages(input);
  const types = loadDescriptors();
  const draft = {
    messages: packMessages(types, messages),
    memo: flagText(flags, "note") ?? flagText(flags, "memo") ?? "",
    ...timeoutsOf(flags),
    gasLimit: 0n,
    feeAtoken: 0n,
  };
  assertSigner(types, draft, signer.address);
  return finish(context, flags, draft, signer);
}

/** When a transaction is void. Throws USAGE. */
function timeoutsOf(flags: Flags) {
  const height = flagText(flags, "timeoutHeight");
  const duration = flagText(flags, "timeoutDuration");
  if (height !== undefined && duration !== undefined) {
    throw usage("--timeout-height and --timeout-duration say two things: take one.");
  }
  const timeoutHeight = integerIn(height ?? "0", "--timeout-height");
  const ms = durationMs(duration ?? "0s", "--timeout-duration");
  if (ms === 0) return { timeoutHeight };
  const atMs = Math.ceil(systemClock.nowMs() + ms);
  const seconds = BigInt(Math.floor(atMs / 1_000));
  return { timeoutHeight, timeoutTimestamp: { seconds, nanos: (atMs % 1_000) * 1_000_000 } };
}

/** Where keys are looked for. */
export function keySources({ home, warn }: TxContext, flags: Flags) {
  return {
    home,
    keyringDir: flagText(flags, "keyringDir"),
    passphraseFile: flagText(flags, "passphraseFile"),
    warn,
  };
}

/** The node that is asked. Throws USAGE for --offline; NODE_FOREIGN. */
export async function nodeOf(context: TxContext, flags: Flags): Promise<TxNode> {
  if (flags["offline"] === true) {
    throw usage("--offline asks no node: this command, or what it leaves out, needs one.");
  }
  const { node } = flags;
  const target = await targetOf(context, typeof node === "string" ? { node } : {});
  return new TxNode(loadDescriptors(), target);
}

/** The sender's argument apart from the others. Throws USAGE where their number is wrong. */
function splitArguments({ args, sender, words }: TxCommand, given: readonly string[]) {
  const least = args.filter((one) => one.startsWith("<")).length;
  const most = args.some((one) => one.includes("...")) ? Number.POSITIVE_INFINITY : args.length;
  const isWithout = sender === "maybe" && given.length === least - 1;
  if (!isWithout && (given.length < least || given.length > most)) {
    throw usage(`${words} takes ${args.join(" ") || "no arguments"}.`);
  }
  if (sender === undefined || isWithout) return { sender: undefined, args: given };
  return { sender: given[0], args: given.slice(1) };
}

async function finish(
  context: TxContext,
  flags: Flags,
  wanted: Draft,
  signer: Signer,
): Promise<number> {
  const types = loadDescriptors();
  const isOffline = flags["offline"] === true;
  const isGenerated = flags["generateOnly"] === true;
  const isDry = flags["dryRun"] === true;
  if (isOffline && isDry) throw usage("--dry-run asks a node, and --offline asks none.");
  const node = isOffline ? undefined : await nodeOf(context, flags);
  const gasText = flagText(flags, "gas") ?? (isOffline || isGenerated ? undefined : "auto");
  const isEstimated = gasText === "auto" || isDry;
  const gasLimit = isEstimated
    ? await estimate(
        await nodeOf(context, flags),
        flags,
        wanted,
        await sequenceOf(flags, node, signer),
      )
    : integerIn(gasText ?? DEFAULT_GAS.toString(), "--gas");
  if (isEstimated) context.warn(`gas estimate: ${gasLimit}`);
  if (isDry) {
    print(context, outputOf(flags), { gas_estimate: gasLimit.toString() });
    return 0;
  }
  const feeAtoken = await feeOf(flags, gasLimit, isGenerated ? undefined : node);
  const draft = { ...wanted, gasLimit, feeAtoken: feeAtoken ?? 0n };
  if (isGenerated) {
    context.print(draftJson(types, draft));
    return 0;
  }
  if (feeAtoken === undefined) {
    throw usage("--offline needs --fees or --gas-prices: no node says what it takes.");
  }
  const isNamed = !isEstimated && flagText(flags, "gasPrices") !== undefined;
  if (!isNamed && flagText(flags, "fees") === undefined) assertUsualFee(feeAtoken);
  const chainId = await chainIdOf(flags, node);
  const sequence = await sequenceOf(flags, node, signer);
  const mode = signModeOf(flags);
  if (node !== undefined) await confirm(context, flags, draftJson(types, draft));
  const bytes = signDraft(types, draft, { chainId, sequence, mode }, signer.privateKey());
  if (node === undefined) {
    context.print(signedJson(types, bytes));
    return 0;
  }
  if (flagText(flags, "sequence") === undefined) await assertNext(node, bytes, sequence);
  return broadcast(context, flags, node, bytes);
}

/**
 * What no sequence was named for comes behind what the pool has of the sender: with a higher price it would
 * take its place there, and that one would never be mined.
 * @throws USAGE with the sequence that is next
 */
async function assertNext(node: TxNode, bytes: Uint8Array, sequence: bigint): Promise<void> {
  const refusal = await node.sequenceRefusal(bytes);
  if (refusal === undefined) return;
  const [, next = "the next one"] = /expected ([0-9]+)/.exec(refusal) ?? [];
  throw usage(
    `Nothing was sent: another transaction of this account has sequence ${sequence}, in the node's pool or ` +
      `mined just now (${refusal}). Send this one behind it with --sequence ${next}; with --sequence ` +
      `${sequence} and a higher fee it takes the place of one in the pool.`,
  );
}

/** The way of signing. Throws USAGE. */
export function signModeOf(flags: Flags): "direct" | "aminoJson" {
  const mode = flagText(flags, "signMode") ?? "direct";
  if (mode === "direct") return "direct";
  if (mode === "amino-json") return "aminoJson";
  throw usage(`--sign-mode is direct or amino-json, not "${mode.slice(0, 50)}".`);
}

/**
 * The chain that is signed for: what the flag says and the node is on.
 * @throws USAGE where they differ, or neither says one
 */
export async function chainIdOf(flags: Flags, node: TxNode | undefined): Promise<string> {
  const named = flagText(flags, "chainId");
  if (node === undefined) {
    if (named === undefined) throw usage("--offline needs --chain-id.");
    return named;
  }
  const found = await node.chainId();
  if (named === undefined || named === found) return found;
  throw usage(`--chain-id is ${named.slice(0, 60)}, and the node is on ${found}.`);
}

/** The sequence that is signed: of the flag, else of the node. Throws USAGE where neither is there. */
export async function sequenceOf(
  flags: Flags,
  node: TxNode | undefined,
  { address }: Pick<Signer, "address">,
): Promise<bigint> {
  const number = integerIn(flagText(flags, "accountNumber") ?? "0", "--account-number");
  if (number !== 0n) throw usage("Every account of this chain has --account-number 0.");
  const named = flagText(flags, "sequence");
  if (named !== undefined) return integerIn(named, "--sequence");
  if (node === undefined) throw usage("--offline needs --sequence.");
  return node.sequence(address);
}

/** Gas of a draft by simulation, with the adjustment. */
export async function estimate(
  node: TxNode,
  flags: Flags,
  draft: Draft,
  sequence: bigint,
): Promise<bigint> {
  const text = flagText(flags, "gasAdjustment") ?? DEFAULT_ADJUSTMENT;
  const [, whole = "", part = ""] = /^([0-9]{1,3})(?:\.([0-9]{1,9}))?$/.exec(text) ?? [];
  const scale = 10n ** BigInt(part.length);
  const adjustment = BigInt(`${whole}${part}` || "0");
  if (adjustment < scale) throw usage("--gas-adjustment must be a number from 1 on, such as 1.2.");
  const publicKey = compressedKey(SIMULATION_KEY);
  const used = await node.gasUsed(simulatedBytes(node.types, draft, { publicKey, sequence }));
  return (used * adjustment + scale - 1n) / scale;
}

/** A key that everybody knows: simulations look at none. */
const SIMULATION_KEY = new Uint8Array(32).fill(1);

/** The fee, atoken; undefined where nothing says one. */
async function feeOf(
  flags: Flags,
  gasLimit: bigint,
  node: TxNode | undefined,
): Promise<bigint | undefined> {
  const fees = flagText(flags, "fees");
  const prices = flagText(flags, "gasPrices");
  if (fees !== undefined && prices !== undefined) {
    throw usage("--fees and --gas-prices say two things: take one.");
  }
  if (fees !== undefined) return amountIn(fees, "--fees");
  if (prices !== undefined) return feeAt(priceIn(prices), gasLimit);
  if (node === undefined) return undefined;
  return feeAt(parseMinimumGasPrices(await node.minimumGasPrice()), gasLimit);
}

/** A node that is wrong, or not one's own, may name any price and any gas. Throws USAGE. */
function assertUsualFee(feeAtoken: Atoken): void {
  if (feeAtoken <= MOST_UNNAMED_FEE_ATOKEN) return;
  throw usage(
    `By what the node says the fee is ${atokenToToken(feeAtoken)} TOKEN: ask another node, or pay ` +
      `it with --fees ${feeAtoken}${BASE_DENOM}.`,
  );
}

function priceIn(text: string): GasPriceRational {
  try {
    return parseMinimumGasPrices(text);
  } catch {
    throw usage(`--gas-prices must be a price such as 0.025atoken, not "${text.slice(0, 60)}".`);
  }
}

function feeAt({ numerator, denominator }: GasPriceRational, gas: bigint): bigint {
  return (gas * numerator + denominator - 1n) / denominator;
}

async function confirm(context: TxContext, flags: Flags, json: string): Promise<void> {
  if (flags["yes"] === true) return;
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY) throw usage("Nobody can be asked here: --yes signs and sends without asking.");
  context.warn(json);
  const question = "confirm transaction before signing and broadcasting [y/N]: ";
  if (await isConfirmed(question, { input, output }, context.signal)) return;
  throw new CliError("USAGE", "Nothing was signed.");
}

/**
 * Sends signed bytes, and prints what became of them.
 * @returns 1 where the transaction was refused or failed
 */
export async function broadcast(
  context: TxContext,
  flags: Flags,
  node: TxNode,
  bytes: Uint8Array,
): Promise<number> {
  const mode = flagText(flags, "broadcastMode") ?? "sync";
  if (mode !== "sync" && mode !== "async" && mode !== "block") {
    throw usage(`--broadcast-mode is sync, async or block, not "${mode.slice(0, 50)}".`);
  }
  // Before it is sent: who mends a flag and types it again would pay twice.
  const output = outputOf(flags);
  const answer = await sent(node, bytes, mode);
  print(context, output, answer.response);
  return answer.code === 0 ? 0 : 1;
}

async function sent(
  node: TxNode,
  bytes: Uint8Array,
  mode: "sync" | "async" | "block",
): Promise<BroadcastAnswer> {
  node.target.signal.throwIfAborted();
  try {
    const answer = await node.broadcast(bytes, mode === "async" ? "async" : "sync");
    // What pool or chain have already is waited for like what was just taken.
    const isTaken = answer.code === 0 || answer.code === SDK_CODE.alreadyInMempool;
    if (mode !== "block" || !isTaken) return answer;
    return await node.waitFor(answer.hash, BLOCK_WAIT_MS);
  } catch (cause) {
    const hash = hashText(bytes);
    const reason = node.target.signal.aborted ? "The command was stopped." : errorMessage(cause);
    throw new CliError(
      "CLIENT_FAILED",
      `${reason} The transaction may have been taken all the same: look with ` +
        `\`causeway query tx ${hash}\` before anything is sent again.`,
      { cause, details: { hash } },
    );
  }
}

/** Hash of a transaction as the SDK writes it. */
function hashText(bytes: Uint8Array): string {
  return Buffer.from(sha256(bytes)).toString("hex").toUpperCase();
}

/** Flags of output as queries have them. Throws USAGE. */
export function outputOf(flags: Flags) {
  const output = flagText(flags, "output");
  if (output === undefined) return {};
  if (output === "text" || output === "json") return { output };
  throw usage(`--output is text or json, not "${output.slice(0, 50)}".`);
}
