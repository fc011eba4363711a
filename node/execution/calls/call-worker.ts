/**
 * Entry of a call worker's thread: does one job after the other. It holds no state of the chain
 * but the code of contracts, which never changes under its hash.
 */
import { constants, getPriority, setPriority } from "node:os";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { errorMessage } from "../../../chain/errors.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { StateReader } from "../../store/state-reader.js";
import { CallError } from "./call-error.js";
import { runJob } from "./call-jobs.js";
import type {
  Job,
  ReadAnswers,
  ReadRequest,
  TracedTransaction,
  WorkerMessage,
  WorkerRequest,
  WorkerStart,
} from "./call-protocol.js";

/** Contract code that a worker keeps between jobs: some 700 contracts of the largest size. */
const CODE_CACHE_BYTES = 16 * 1024 * 1024;

/**
 * Steps of priority that a worker stands behind the node's other threads: Linux gives it a ninth of what
 * they get (sched(7)). The lowest priority is a seventieth, with which a worker on a busy machine did
 * not even come up in the time of a call: no gas was estimated, and no token's balance of the past read.
 */
const STEPS_BEHIND = 10;

stepBack();

const start = workerData as WorkerStart;
const counter = new Int32Array(start.answered);
const codes = new LRUCache<Hash32, Uint8Array>({
  maxSize: CODE_CACHE_BYTES,
  sizeCalculation: (code) => code.length + 1,
});

/**
 * Leaves most of the processor to whoever else wants it: what a client asks must never delay a block. On
 * Linux a priority is of the thread that names it; elsewhere it would be of the whole node.
 */
function stepBack(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(getPriority(0) + STEPS_BEHIND, constants.priority.PRIORITY_LOW));
  } catch {
    // Where that is forbidden the worker runs as it is: the number of workers is a bound, too.
  }
}

/** Asks the main thread and sleeps until it has answered. */
function ask<Request extends ReadRequest>(request: Request): ReadAnswers[Request["kind"]] {
  const before = Atomics.load(counter, 0);
  start.reads.postMessage(request, []);
  for (;;) {
    const answer = receiveMessageOnPort(start.reads);
    if (answer !== undefined) return answer.message;
    Atomics.wait(counter, 0, before);
  }
}

const reader: StateReader = {
  account: (address) => ask({ kind: "account", address }),
  storage: (address, slot) => ask({ kind: "storage", address, slot }),
  code(codeHash) {
    const known = codes.get(codeHash);
    if (known !== undefined) return known;
    const code = ask({ kind: "code", codeHash });
    codes.set(codeHash, code);
    return code;
  },
};

async function work(job: Job): Promise<WorkerMessage> {
  try {
    const result = await runJob(job, {
      settings: start.settings,
      reader,
      accounts: (addresses) => ask({ kind: "accounts", addresses }),
      blockHash: (height) => ask({ kind: "blockHash", height }),
    });
    return { type: "done", id: job.id, result };
  } catch (error) {
    const { code, details } =
      error instanceof CallError ? error : { code: "CALL_WORKER_FAILED" as const, details: {} };
    return { type: "fault", id: job.id, code, message: errorMessage(error), details };
  }
}

function post(message: WorkerMessage): void {
  parentPort?.postMessage(message, []);
}

/** Came ahead of the job that repeats them. */
let ahead: TracedTransaction[] = [];

/** The job with what came ahead of it. */
function whole(job: Job): Job {
  const transactions = ahead;
  ahead = [];
  return job.work.kind === "traceBlock" ? { ...job, work: { ...job.work, transactions } } : job;
}

parentPort?.on("message", (request: WorkerRequest) => {
  if ("transactions" in request) ahead.push(...request.transactions);
  else void work(whole(request)).then(post);
});
post({ type: "ready" });
