/** Transactions that CosmJS encodes and signs, independently of us. */
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { afterAll } from "@jest/globals";

/** A message as CosmJS takes it; a bigint is written as `"5n"`. */
export interface CosmJsMessage {
  readonly typeUrl: string;
  readonly value: unknown;
}

/** One transaction to sign. */
export interface CosmJsRequest {
  readonly messages: readonly CosmJsMessage[];
  readonly chainId: string;
  readonly memo?: string;
  readonly sequence?: number;
  readonly gas?: number;
  readonly fee?: readonly { readonly denom: string; readonly amount: string }[];
  readonly granter?: string;
  readonly timeoutHeight?: number;
  /** `SignMode`; the signature is one of SIGN_MODE_DIRECT in any case. */
  readonly mode?: number;
  /** Whether the bytes are wanted that CosmJS has simulated, which are not signed. */
  readonly isSimulated?: boolean;
  /** Whether the amino JSON is wanted. */
  readonly amino?: boolean;
}

/** A signed transaction. */
export interface CosmJsAnswer {
  /** `TxRaw`. */
  readonly raw: Buffer;
  /** Amino JSON to be signed, where it was wanted. */
  readonly amino: string | undefined;
}

const SCRIPT = new URL("cosmjs-sign.mjs", import.meta.url);

/** It takes a second to load CosmJS; the rest is for busy machines. */
const ANSWER_TIMEOUT_MS = 240_000;

/** A thread that has CosmJS, and answers while its asker stands still. */
class CosmJsThread {
  private readonly answered = new Int32Array(new SharedArrayBuffer(4));
  private readonly port;
  private readonly worker: Worker;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    this.worker = new Worker(SCRIPT, {
      workerData: { port: port2, answered: this.answered },
      transferList: [port2],
    });
    this.worker.unref();
    port1.unref();
  }

  ask(question: string): string {
    Atomics.store(this.answered, 0, 0);
    this.port.postMessage(question, []);
    Atomics.wait(this.answered, 0, 0, ANSWER_TIMEOUT_MS);
    const answer: { readonly text?: string; readonly error?: string } =
      receiveMessageOnPort(this.port)?.message ?? {};
    if (answer.text === undefined) throw new Error(answer.error ?? "CosmJS gave no answer");
    return answer.text;
  }

  async end(): Promise<void> {
    this.port.close();
    await this.worker.terminate();
  }
}

/** One for each test file that signs. */
let thread: CosmJsThread | undefined;
afterAll(async () => {
  await thread?.end();
});

/** Signs with the first account of an Ethereum wallet's mnemonic. */
export function signWithCosmJs(
  mnemonic: string,
  requests: readonly CosmJsRequest[],
): readonly CosmJsAnswer[] {
  thread ??= new CosmJsThread();
  const answers: readonly { readonly raw: string; readonly amino?: string }[] = JSON.parse(
    thread.ask(JSON.stringify({ mnemonic, requests })),
  );
  return answers.map(({ raw, amino }) => ({ raw: Buffer.from(raw, "hex"), amino }));
}
