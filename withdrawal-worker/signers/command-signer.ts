/**
 * A program that signs digests, one JSON line for each on its standard input and output: how keys in
 * PKCS#11 modules and other hardware are reached, whose libraries this process then need not load.
 * Request: `{"id", "method": "sign", "address", "digest", "transaction"}`; answer: `{"id", "r", "s"}`
 * (32 bytes each, 0x hex) or `{"id", "error"}`. Hardware knows no recovery id and no lower half:
 * both are made here. The program shows nothing but the signature, so the digest is ours.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Address } from "../../chain/address.js";
import { errorMessage } from "../../chain/errors.js";
import { cleanForeignText } from "../../chain/evm/foreign-text.js";
import { SECP256K1_ORDER } from "../../chain/crypto.js";
import { bytesToBigint, bytesToHex, hexToBytes, parseHash32 } from "../../chain/hex.js";
import { completeSignature } from "../../chain/signing/completed-signature.js";
import { buildSigned, buildSigningDigest } from "../../chain/signing/legacy-transaction.js";
import { personalDigest } from "../../chain/signing/personal-message.js";
import { withTimeout } from "../../runtime/process/task.js";
import { WorkerError } from "../errors.js";
import { differs } from "./check-signed.js";
import type { KeyHolder, TransactionIntent } from "./signer-port.js";

/** Characters of the program's own words that are kept. */
const MAX_ERROR_CHARACTERS = 200;

/** Longest wait for the end of a program that was killed. */
const END_MS = 2_000;

type SigningProcess = ChildProcessByStdio<Writable, Readable, null>;

/** A line of the program that belongs to a request. */
type Answer = { readonly r: string; readonly s: string } | { readonly error: string };

/** Starts the program at the first intent, and again after it ended. */
export function createCommandSigner(options: {
  /** Program and arguments; no shell reads them. */
  readonly command: readonly string[];
  readonly timeoutMs: number;
  readonly address: Address;
}): KeyHolder {
  const program = new SigningProgram(options.command);
  const { address, timeoutMs } = options;
  return {
    address,
    async signTransaction(intent, { signal }) {
      const digest = buildSigningDigest(intent);
      const asked = { address, digest: bytesToHex(digest), transaction: textOf(intent) };
      const answer = await askInTime(program, asked, { timeoutMs, signal }).catch((cause) => {
        if (cause instanceof UnreadableLine) throw differs(["answer"], intent.nonce, cause);
        throw cause;
      });
      return assemble(intent, digest, signedBy(answer), address);
    },
    async signText(text, { signal }) {
      const asked = { address, digest: bytesToHex(personalDigest(text)), text };
      const answer = await askInTime(program, asked, { timeoutMs, signal }).catch((cause) => {
        if (cause instanceof UnreadableLine) throw unreachable(errorMessage(cause), cause);
        throw cause;
      });
      const { r, s } = signedBy(answer);
      return `${r}${s.replace(/^0x/, "")}`;
    },
    close: () => program.end(),
  };
}

/** @throws SIGNER_UNREACHABLE */
function signedBy(answer: Answer): Exclude<Answer, { readonly error: string }> {
  if (!("error" in answer)) return answer;
  throw unreachable(cleanForeignText(answer.error, MAX_ERROR_CHARACTERS));
}

function textOf(intent: TransactionIntent): Readonly<Record<string, string>> {
  return {
    chainId: intent.chainId.toString(),
    nonce: intent.nonce.toString(),
    to: intent.to,
    valueAtoken: intent.valueAtoken.toString(),
    data: bytesToHex(intent.data),
    gasLimit: intent.gasLimit.toString(),
    gasPriceAtoken: intent.gasPriceAtoken.toString(),
  };
}

/** @throws SIGNER_UNREACHABLE, UnreadableLine; the signal's reason */
async function askInTime(
  program: SigningProgram,
  asked: object,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Answer> {
  try {
    return await withTimeout((inner) => program.ask({ method: "sign", ...asked }, inner), {
      timeoutMs,
      signal,
      what: "the signer's program",
    });
  } catch (cause) {
    // An answer that comes late must not be taken for the next one's, also behind a round that ended.
    await program.end();
    signal.throwIfAborted();
    throw cause instanceof UnreadableLine ? cause : unreachable(errorMessage(cause), cause);
  }
}

/** With what hardware leaves out. */
function assemble(
  intent: TransactionIntent,
  digest: Uint8Array,
  answer: { readonly r: string; readonly s: string },
  address: Address,
): Uint8Array {
  const [r, s] = readWords(answer, intent);
  const signature = completeSignature(digest, { r, s }, address);
  if (signature === undefined) throw differs(["sender"], intent.nonce);
  return buildSigned(intent, signature).raw;
}

function readWords(
  { r, s }: { readonly r: string; readonly s: string },
  { nonce }: TransactionIntent,
): readonly [Uint8Array, Uint8Array] {
  try {
    const words = [r, s].map((word) => hexToBytes(parseHash32(word)));
    const isInGroup = (word: bigint) => word > 0n && word < SECP256K1_ORDER;
    const [first, second] = words;
    if (first !== undefined && second !== undefined) {
      if (words.map(bytesToBigint).every(isInGroup)) return [first, second];
    }
  } catch (cause) {
    throw differs(["answer"], nonce, cause);
  }
  throw differs(["answer"], nonce);
}

function unreachable(what: string, cause?: unknown): WorkerError {
  const message = `the signer did not sign: ${what}`;
  return new WorkerError("SIGNER_UNREACHABLE", message, { retriable: true, cause });
}

/** The program wrote what is no answer. */
class UnreadableLine extends Error {}

interface Waiting {
  readonly id: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (cause: Error) => void;
}

/** The running program, with at most one request under way. */
class SigningProgram {
  readonly #command: readonly string[];
  #child: SigningProcess | undefined;
  #waiting: Waiting | undefined;
  #nextId = 1;

  constructor(command: readonly string[]) {
    this.#command = command;
  }

  ask(request: object, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    const child = this.#child ?? this.#start();
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting = { id, resolve, reject };
      child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }

  /** Ends the program; the next request starts it anew. */
  async end(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    this.#waiting = undefined;
    if (child === undefined) return;
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise<void>((resolve) => {
        for (const event of ["exit", "close"]) child.once(event, () => resolve());
        // Nothing ends one that waits in the kernel for its hardware. Its answers are nobody's by now.
        setTimeout(resolve, END_MS).unref();
      });
      child.kill("SIGKILL");
      await ended;
    }
    // What it has started may hold its output open, for as long as it likes.
    child.stdout.destroy();
  }

  #start(): SigningProcess {
    const [program = "", ...parameters] = this.#command;
    const child = spawn(program, parameters, { stdio: ["pipe", "pipe", "inherit"] });
    if (!hasPipes(child)) throw notStarted(child);
    this.#child = child;
    const gone = (what: string) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#fail(new Error(what));
    };
    child.once("error", (error) => gone(errorMessage(error)));
    child.once("close", (code) => gone(`the program ended (${code ?? "killed"})`));
    // A program that ends while it is written to says so by its end.
    child.stdin.on("error", () => undefined);
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (this.#child === child) this.#take(line);
    });
    return child;
  }

  #take(line: string): void {
    const waiting = this.#waiting;
    const answer = readAnswer(line, waiting?.id);
    if (answer === undefined) return this.#fail(new UnreadableLine("no answer to this request"));
    this.#waiting = undefined;
    waiting?.resolve(answer);
  }

  #fail(cause: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(cause);
  }
}

/** Where there are no descriptors left, Node gives a process without pipes, and its fault a moment later. */
function hasPipes({
  stdin,
  stdout,
}: {
  readonly stdin: unknown;
  readonly stdout: unknown;
}): boolean {
  return Boolean(stdin) && Boolean(stdout);
}

function notStarted(child: ChildProcess): Error {
  // Nobody else would hear of it, and the process would end.
  child.once("error", () => undefined);
  return new Error("the program cannot be started now");
}

function readAnswer(line: string, id: number | undefined): Answer | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const read = (name: string): unknown => Reflect.get(Object(value), name);
  const [r, s, error] = [read("r"), read("s"), read("error")];
  if (id === undefined || read("id") !== id) return undefined;
  if (typeof error === "string") return { error };
  return typeof r === "string" && typeof s === "string" ? { r, s } : undefined;
}
