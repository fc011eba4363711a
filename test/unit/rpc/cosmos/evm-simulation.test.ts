/** An EVM transaction that comes as the SDK writes it is simulated with all that a block asks of it. */
import { expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { encodeSdkTransaction } from "../../../../chain/consensus/sdk-transaction.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../../chain/transaction.js";
import type {
  CallOptions,
  CallRequest,
  CallWorkers,
} from "../../../../node/execution/calls/call-port.js";
import { withEvmSimulation } from "../../../../node/rpc/cosmos/evm-simulation.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import type { SdkTransactions } from "../../../../node/view/sdk-transactions.js";

const sender = new Wallet(`0x${"41".repeat(32)}`);
const asker = { signal: new AbortController().signal, client: "10.0.0.1" };

/** What is asked of the calls. */
async function askedFor(fields: Parameters<Wallet["signTransaction"]>[0]): Promise<CallRequest> {
  const asked: CallRequest[] = [];
  const calls = {
    call: async (request: CallRequest, _height: number, options: CallOptions) => {
      // Whose it is: clients have turns at the workers.
      expect(options).toEqual(asker);
      asked.push(request);
      return { outcome: "success", gasUsed: 21_000n, returnData: new Uint8Array(0) };
    },
  } as unknown as CallWorkers;
  const view = { head: () => ({ height: 3 }) } as unknown as CometChain["view"];
  const transactions = withEvmSimulation({} as SdkTransactions, { view }, calls);
  const raw = await sender.signTransaction({
    chainId: 6_940,
    nonce: 0,
    gasLimit: 21_000,
    ...fields,
  });
  const tx = decodeTransaction(parseHexBytes(raw));
  await transactions.simulate(encodeSdkTransaction(tx, recoverSender(tx)), asker);
  const [request] = asked;
  if (request === undefined) throw new Error("nothing was asked");
  return request;
}

it("names the fee cap, up to which the sender must be able to pay", async () => {
  const maxFeePerGas = 10n ** 30n;
  const request = await askedFor({ type: 2, maxFeePerGas, maxPriorityFeePerGas: 25_000_000n });
  expect(request).toMatchObject({
    gasPriceAtoken: 25_000_000n,
    dynamicFees: { maxFeePerGasAtoken: maxFeePerGas, maxPriorityFeePerGasAtoken: 25_000_000n },
  });
  const legacy = await askedFor({ type: 0, gasPrice: 25_000_000n });
  expect(legacy.dynamicFees?.maxFeePerGasAtoken ?? legacy.gasPriceAtoken).toBe(25_000_000n);
});
