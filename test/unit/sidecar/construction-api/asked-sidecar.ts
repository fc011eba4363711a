/**
 * An online sidecar over a node whose answers a test replaces, and requests for the metadata of a
 * transaction.
 */
import { afterAll, beforeAll, beforeEach } from "@jest/globals";
import { getAddress, Transaction } from "ethers";
import { ALICE, BOB, startFakeChain } from "../../../helpers/chains/journal-chain.js";
import { type FakeNode, type Method, RpcFault } from "../../../helpers/chains/fake-node.js";
import { CURRENCY } from "../../../helpers/chains/known-tokens.js";
import { call, type Online, onlineServer } from "../servers.js";

/** Who pays. */
export const FROM = getAddress(ALICE);
/** Who is paid. */
export const TO = getAddress(BOB);
/** What metadata is asked for where a test says nothing else. */
export const OPTIONS = { from: FROM, to: TO, value: "1000", currency: CURRENCY, data: "0x" };

/** One for all tests of a file; each begins with the node's usual answers. */
export function sidecarForTests() {
  let node: FakeNode;
  let online: Online;

  beforeAll(async () => {
    node = await startFakeChain({
      eth_sendRawTransaction: ([raw]) => Transaction.from(String(raw)).hash,
      eth_getTransactionCount: ([, tag]) => (tag === "pending" ? "0x9" : "0x5"),
      txpool_contentFrom: () => ({ pending: {}, queued: {} }),
      eth_capabilities: () => ({}),
    });
    online = onlineServer(node.url);
  });

  beforeEach(() => node.reset());

  afterAll(async () => {
    await online.rpc.close();
    await node.close();
  });

  const replace = (method: string, answer: Method) => node.methods.set(method, answer);

  const refuse = (method: string, code: number, message: string, data?: unknown) =>
    replace(method, () => {
      throw new RpcFault(code, message, data);
    });

  const metadata = (options: Record<string, unknown> = {}) =>
    call(online.server, "/construction/metadata", { options: { ...OPTIONS, ...options } });

  const price = async (multiplier: number) =>
    (await metadata({ suggested_fee_multiplier: multiplier })).body.metadata.gas_price;

  return {
    get node() {
      return node;
    },
    get online() {
      return online;
    },
    replace,
    refuse,
    metadata,
    price,
  };
}
