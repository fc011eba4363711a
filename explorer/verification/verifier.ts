/**
 * Verifies contracts by recompiling: one compilation at a time, in turns by client, few waiting,
 * outcomes kept for a while in memory and verified contracts for good in the store. The code that counts is
 * the node's.
 */
import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Address } from "../../chain/address.js";
import { errorMessage } from "../../chain/errors.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { hexToBytes } from "../../chain/hex.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { clientOf } from "../../runtime/turns/client-address.js";
import { ClientPlaces } from "../../runtime/turns/client-places.js";
import { Turns } from "../../runtime/turns/turns.js";
import { PageError } from "../../web/errors.js";
import type { AbiItem } from "../decode/abi-items.js";
import type { ChainSource } from "../sources/chain-source.js";
import { matchCode } from "./code-match.js";
import {
  type Compilation,
  type CompiledContract,
  compileIn,
  type CompileLimits,
  findCompiler,
  isSameVersion,
  listCompilers,
} from "./compilers.js";
import { findCreation } from "./creation.js";
import { refused, type RefusalCode, VerificationRefusal } from "./refusal.js";
import {
  compilerInput,
  hasTail,
  parseStandardInput,
  parseTarget,
  type StandardInput,
  withSources,
} from "./standard-input.js";
import {
  type ContractFace,
  MAX_ABI_CHARACTERS,
  sentAlongBytes,
  type VerifiedContract,
  type VerifiedStore,
} from "./verified-store.js";

/** What somebody sent; all texts are a stranger's. */
export interface VerificationRequest {
  readonly address: Address;
  /** Standard JSON. */
  readonly input: string;
  readonly contractName: string;
  readonly compilerVersion: string;
  /** Hex with or without 0x; "" where none are claimed. */
  readonly constructorArguments: string;
}

/** A verification and what became of it. */
export interface VerificationJob {
  readonly id: string;
  readonly address: Address;
  readonly outcome:
    | { readonly kind: "waiting" }
    | { readonly kind: "verified"; readonly match: "exact" | "partial" }
    | { readonly kind: "refused"; readonly code: RefusalCode; readonly detail: string };
}

/** What a verifier is made of. */
export interface VerifierOptions {
  readonly chain: ChainSource;
  readonly store: VerifiedStore;
  /** Folder of compilers; "" for none. */
  readonly compilers: string;
  readonly limits: CompileLimits;
  /** True holds clients of this machine to their share of the places, too. */
  readonly limitsLoopback: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** Verifications that wait or run, each with its input: one client has half of them, and beyond it two. */
const WAITING = { most: 8, unshared: 1 / 2, share: 1 / 4 };

/** Outcomes that are remembered. */
const MAX_JOBS = 256;

/** Time for all questions to the node of one verification. */
const NODE_TIMEOUT_MS = 30_000;

/** Sources that a contract is not made of, where its code is another one without them. */
const MAX_SENT_ALONG_BYTES = 256 * 1024;

/** Characters of a detail. */
const MAX_DETAIL = 8_000;

const ARGUMENTS = /^(?:0x)?((?:[0-9a-f]{2})*)$/i;

/** Takes verifications and does one after the other. */
export class Verifier implements Service {
  readonly name = "verifier";
  private readonly jobs = new LRUCache<string, VerificationJob>({ max: MAX_JOBS });
  private readonly running = new Map<string, Promise<void>>();
  private readonly places: ClientPlaces;
  private readonly turns = new Turns({ maxRunning: 1, maxWaiting: WAITING.most, full: busy });

  constructor(private readonly options: VerifierOptions) {
    this.places = new ClientPlaces({ ...WAITING, limitsLoopback: options.limitsLoopback });
  }

  /** Versions of the compilers that there are, the newest first. */
  async versions(): Promise<readonly string[]> {
    return (await listCompilers(this.options.compilers)).map(({ version }) => version);
  }

  /** A verification by its id; undefined where it is not remembered. */
  job(id: string): VerificationJob | undefined {
    return this.jobs.get(id);
  }

  /**
   * Takes a verification; it waits for its turn.
   * @param remoteAddress of who sent it
   * @throws BUSY
   */
  submit(request: VerificationRequest, remoteAddress: string | undefined): VerificationJob {
    if (!this.places.hasRoom(remoteAddress)) throw busy();
    const id = randomUUID();
    const { address } = request;
    const job: VerificationJob = { id, address, outcome: { kind: "waiting" } };
    this.jobs.set(id, job);
    const leave = this.places.take(remoteAddress);
    const done = this.run(id, request, clientOf(remoteAddress)).finally(leave);
    this.running.set(id, done);
    return job;
  }

  /** Waits until a verification is done, at most so long. */
  async settled(id: string, timeoutMs: number): Promise<void> {
    const done = this.running.get(id);
    if (done === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([done, late]);
    clearTimeout(timer);
  }

  /** Waits for what runs; the process's signal has ended it. */
  async stop(): Promise<void> {
    await Promise.all(this.running.values());
  }

  /** Never throws. */
  private async run(id: string, request: VerificationRequest, client: string): Promise<void> {
    const { address } = request;
    const work = () => this.verify(request);
    try {
      const { match } = await this.turns.run(this.options.signal, work, client);
      this.jobs.set(id, { id, address, outcome: { kind: "verified", match: match.kind } });
      this.options.log.info({ address, match: match.kind }, "contract verified");
    } catch (error) {
      const { code, detail } = this.refusalOf(error);
      this.jobs.set(id, { id, address, outcome: { kind: "refused", code, detail } });
    } finally {
      this.running.delete(id);
    }
  }

  private refusalOf(error: unknown): { readonly code: RefusalCode; readonly detail: string } {
    const { signal, log } = this.options;
    if (error instanceof VerificationRefusal) {
      return { code: error.code, detail: error.message.slice(0, MAX_DETAIL) };
    }
    if (signal.aborted) return { code: "STOPPED", detail: "" };
    if (error instanceof NodeFault || error instanceof RpcError) {
      return { code: "NODE_AWAY", detail: "" };
    }
    if (error instanceof Error && error.name === "TimeoutError") {
      return { code: "NODE_AWAY", detail: "" };
    }
    log.error({ err: error }, "verification failed");
    return { code: "STOPPED", detail: errorMessage(error).slice(0, MAX_DETAIL) };
  }

  private async verify(request: VerificationRequest): Promise<VerifiedContract> {
    const { chain, store, limits, clock, signal } = this.options;
    const { address } = request;
    const sent = parseStandardInput(request.input);
    const target = parseTarget(request.contractName);
    const claimed = ARGUMENTS.exec(request.constructorArguments.trim())?.[1]?.toLowerCase();
    if (claimed === undefined) throw refused("BAD_INPUT", "constructor arguments must be hex");
    const compiler = findCompiler(
      await listCompilers(this.options.compilers),
      request.compilerVersion,
    );
    if (compiler === undefined) throw refused("NO_COMPILER", request.compilerVersion.slice(0, 60));
    const asking = { signal: limitedSignal([signal], NODE_TIMEOUT_MS) };
    const head = await chain.head(asking);
    const code = await chain.evm.getCode(address, head.height, asking);
    if (code === "0x") throw refused("NO_CODE", address);
    const compile = (given: StandardInput) =>
      compileIn(compiler, compilerInput(given, target), target, { ...limits, signal });
    const compilation = await compile(sent);
    if (!isSameVersion(request.compilerVersion, compilation.version)) {
      throw refused("OTHER_COMPILER", compilation.version);
    }
    const codeBytes = hexToBytes(code);
    const settings = { hasTail: hasTail(sent) };
    const compare = (one: CompiledContract) =>
      matchCode(codeBytes, one, address.slice(2), settings);
    const whole = theOne(compilation.found, compilation.errors);
    if (whole.abi.length > MAX_ABI_CHARACTERS) {
      const detail = `${whole.abi.length} characters; at most ${MAX_ABI_CHARACTERS} are read`;
      throw refused("ABI_TOO_LARGE", detail);
    }
    compare(whole);
    const { input, found } = await withoutOthers({ input: sent, found: whole }, compile);
    const match = compare(found);
    const looking = { signal: limitedSignal([signal], NODE_TIMEOUT_MS) };
    const creation = await findCreation(
      chain,
      { address, headHeight: head.height, found, match, settings },
      looking,
    );
    if (
      claimed !== "" &&
      creation !== undefined &&
      creation.constructorArguments !== `0x${claimed}`
    ) {
      throw refused("WRONG_ARGUMENTS", creation.constructorArguments);
    }
    const contract: VerifiedContract = {
      address,
      codeHash: keccak256Hex(codeBytes),
      match,
      compiler: compilation.version,
      source: found.source,
      name: found.name,
      abi: JSON.parse(found.abi) as readonly unknown[],
      input,
      parts: partsOf(found.metadata),
      creation,
      verifiedAtSeconds: Math.floor(clock.nowMs() / 1_000),
    };
    await store.put(contract);
    return contract;
  }
}

function busy(): PageError {
  return new PageError("BUSY", "too many verifications wait", {
    retriable: true,
    details: { retryAfterSeconds: 10 },
  });
}

/** The verified contract of an address, if its code is still the one that was compared. */
export async function verifiedNow(
  { store, chain }: { readonly store: VerifiedStore; readonly chain: ChainSource },
  address: Address,
  signal: AbortSignal,
): Promise<VerifiedContract | undefined> {
  const contract = await store.get(address);
  if (contract === undefined) return undefined;
  const code = await chain.evm.getCode(address, "latest", { signal });
  return keccak256Hex(hexToBytes(code)) === contract.codeHash ? contract : undefined;
}

/** ABIs of those of some contracts that are verified and have the code that was compared. */
export async function abisNow(
  { store, chain }: { readonly store: VerifiedStore; readonly chain: ChainSource },
  addresses: readonly Address[],
  signal: AbortSignal,
): Promise<ReadonlyMap<Address, readonly AbiItem[]>> {
  const found: { readonly address: Address; readonly face: ContractFace }[] = [];
  // One after the other: each may have to be read out of a large file.
  for (const address of addresses) {
    const face = await store.face(address);
    signal.throwIfAborted();
    if (face !== undefined) found.push({ address, face });
  }
  const codes = await Promise.all(
    found.map(({ address }) => chain.evm.getCode(address, "latest", { signal })),
  );
  const hashes = codes.map((code) => keccak256Hex(hexToBytes(code)));
  return new Map(
    found.flatMap(({ address, face }, index) =>
      hashes[index] === face.codeHash ? [[address, face.abi]] : [],
    ),
  );
}

/** An input, and what the compiler made of it. */
interface CompiledInput {
  readonly input: StandardInput;
  readonly found: CompiledContract;
}

/**
 * What is kept of an input: the sources that the contract is made of, where these alone compile to the
 * same. Of the others nothing proves what is in them, and anybody may send them. Some compilers name things
 * after all that they were given: then all of it is kept, within a bound.
 * @throws TOO_MUCH_SENT_ALONG
 */
async function withoutOthers(
  sent: CompiledInput,
  compile: (input: StandardInput) => Promise<Compilation>,
): Promise<CompiledInput> {
  const parts = partsOf(sent.found.metadata);
  const sizeBytes = sentAlongBytes({ input: sent.input, parts });
  if (parts === undefined || sizeBytes === 0) return sent;
  const input = withSources(sent.input, new Set(parts));
  const { found, errors } = await compile(input);
  const [again] = found;
  if (errors.length === 0 && again !== undefined && isSame(again, sent.found)) {
    return { input, found: again };
  }
  if (sizeBytes > MAX_SENT_ALONG_BYTES) {
    const detail = `${sizeBytes} bytes; at most ${MAX_SENT_ALONG_BYTES} are kept`;
    throw refused("TOO_MUCH_SENT_ALONG", detail);
  }
  return sent;
}

function isSame(one: CompiledContract, other: CompiledContract): boolean {
  return (
    one.runtimeCode === other.runtimeCode &&
    one.creationCode === other.creationCode &&
    one.metadata === other.metadata
  );
}

/** Sources that a contract is made of: those whose hashes its metadata has. */
function partsOf(metadata: string): readonly string[] | undefined {
  if (metadata === "") return undefined;
  const { sources } = JSON.parse(metadata) as { readonly sources?: object };
  return sources === undefined ? undefined : Object.keys(sources);
}

function theOne(found: readonly CompiledContract[], errors: readonly string[]): CompiledContract {
  if (errors.length > 0) throw refused("COMPILE_ERRORS", errors.join("\n"));
  const [only, ...others] = found;
  if (only === undefined) throw refused("NO_SUCH_CONTRACT", "");
  if (others.length > 0) {
    throw refused("AMBIGUOUS", found.map(({ source, name }) => `${source}:${name}`).join(", "));
  }
  return only;
}
