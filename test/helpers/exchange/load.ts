/** Background load: plain transfers between accounts that the exchange has nothing to do with. */
import { parseAddress } from "../../../chain/address.js";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import type { ExchangeChain } from "./chain.js";
import { TEST_GAS_PRICE_ATOKEN } from "./chain.js";
import { until } from "../until.js";

/** Time between two batches of the load. */
const TICK_MS = 200;

/** Transfers per batch: 200 a second when the machine keeps up. */
const BATCH = 40;

/** No load is longer: a machine on which the exchange takes more time has no cores for it. */
const LONGEST_MS = 180_000;

/** Load that runs until it is stopped. */
export interface RunningLoad {
  /** Ends it, waits until all of it is mined. */
  stop(): Promise<{ readonly sent: number; readonly perSecond: number }>;
}

/**
 * Starts sending; a batch waits for the answer to the one before it.
 * @param account funded, used by nobody else, nonce 0
 */
export function startLoad(
  url: string,
  chain: ExchangeChain,
  account: { readonly address: string; readonly privateKey: string },
): RunningLoad {
  const privateKey = hexToBytes(account.privateKey);
  const startMs = performance.now();
  const ending = new AbortController();
  let sent = 0;
  const transfer = () => {
    const to = parseAddress(`0x${(0x10ad_0000 + (sent % 97)).toString(16).padStart(40, "0")}`);
    const intent = { chainId: 6940n, nonce: BigInt(sent), gasLimit: 21_000n, to, valueAtoken: 7n };
    sent += 1;
    const all = { ...intent, gasPriceAtoken: TEST_GAS_PRICE_ATOKEN, data: new Uint8Array(0) };
    return bytesToHex(signLegacy(all, privateKey));
  };
  const loop = async () => {
    const isOver = () => ending.signal.aborted || performance.now() - startMs > LONGEST_MS;
    for (let tick = 1; !isOver(); tick += 1) {
      await sendBatch(url, Array.from({ length: BATCH }, transfer));
      const waitMs = startMs + tick * TICK_MS - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
    return Math.round((sent * 1_000) / (performance.now() - startMs));
  };
  const running = loop();
  // A fault is thrown by `stop`; until then nobody waits for it.
  running.catch(() => undefined);
  return {
    async stop() {
      ending.abort();
      const perSecond = await running;
      const nonce = () =>
        chain.provider.send("eth_getTransactionCount", [account.address, "latest"]);
      await until(async () => Number(await nonce()) === sent, {
        timeoutMs: 60_000,
        what: `all ${sent} transfers of the load are mined`,
      });
      return { sent, perSecond };
    },
  };
}

async function sendBatch(url: string, raws: readonly string[]): Promise<void> {
  const calls = raws.map((raw, id) => ({
    jsonrpc: "2.0",
    id,
    method: "eth_sendRawTransaction",
    params: [raw],
  }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(calls),
  });
  const answers = (await response.json()) as readonly { result?: string; error?: unknown }[];
  const refused = answers.find(({ result }) => result === undefined);
  if (refused !== undefined) throw new Error(`load refused: ${JSON.stringify(refused)}`);
}
