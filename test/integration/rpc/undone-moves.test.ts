/** Blocks of Cosmos transactions that fail behind many moves: whoever follows the chain can read them. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HDNodeWallet, Mnemonic } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { nativeGenesis, wallets } from "../../helpers/chains/native-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";

const PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow";
const PAYER = parseAddress(
  HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PHRASE), "m/44'/60'/0'/0/0").address.toLowerCase(),
);
const MOVES = 100;
const TRANSACTIONS = 4;

const { signal } = new AbortController();
const coins = (amount: bigint) => [{ denom: "atoken", amount: amount.toString() }];

let served: ServedChain;
let rpc: JsonRpcClient;

beforeAll(async () => {
  served = await ServedChain.open(nativeGenesis());
  rpc = createJsonRpcClient({ url: served.url, timeoutMs: 30_000 });
});
afterAll(async () => {
  rpc.close();
  await served.close();
});

it("have a journal with a short reason for each move", async () => {
  const [rich] = wallets;
  const fields = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 21_000n, nonce: 0 };
  const paid = await rich?.signTransaction({ ...fields, to: PAYER, value: 10n ** 18n });
  await served.mine([paid ?? "0x"]);
  const own = toBech32(PAYER);
  const outputs = Array.from({ length: MOVES }, (_, index) => ({
    address: toBech32(parseAddress(`0x${(0xb000 + index).toString(16).padStart(40, "0")}`)),
    coins: coins(1n),
  }));
  const value = {
    messages: [],
    initialDeposit: [],
    proposer: own,
    metadata: JSON.stringify({ title: "a".repeat(240) }),
    title: "\u0001".repeat(255),
    summary: "s",
    expedited: false,
  };
  const gas = 4_000_000;
  const signed = signWithCosmJs(
    PHRASE,
    Array.from({ length: TRANSACTIONS }, (_, sequence) => ({
      messages: [
        {
          typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend",
          value: { inputs: [{ address: own, coins: coins(BigInt(MOVES)) }], outputs },
        },
        { typeUrl: "/cosmos.gov.v1.MsgSubmitProposal", value },
      ],
      chainId: served.chain.genesis.cosmosChainId,
      sequence,
      gas,
      fee: coins(BigInt(gas) * 25_000_000n),
    })),
  );
  const { committed } = await served.mine(
    [],
    signed.map(({ raw }) => raw),
  );
  const { hash, cosmos = [] } = committed.block;
  expect(cosmos.map(({ result: { code, log } }) => [code, log.length > 500])).toEqual(
    Array.from({ length: TRANSACTIONS }, () => [5, true]),
  );
  const journal = await createEvmClient(rpc).blockJournal(hash, { signal });
  const undone = journal?.transactions.flatMap(({ changes }) =>
    changes.filter(({ effective }) => !effective),
  );
  expect(undone).toHaveLength(TRANSACTIONS * MOVES);
  const answer = JSON.stringify(await rpc.request("causeway_getBlockJournal", [hash], { signal }));
  expect(Math.ceil(answer.length / (TRANSACTIONS * MOVES))).toBeLessThan(400);
});
