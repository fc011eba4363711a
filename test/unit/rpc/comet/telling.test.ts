/** Subscribers of the consensus RPC are told of full blocks in slices, whatever they ask and the block holds. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { AbiCoder, Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import type { MinedCosmosTransaction } from "../../../../chain/cosmos/cosmos-result.js";
import { Arguments } from "../../../../node/rpc/comet/arguments.js";
import { blockPublications } from "../../../../node/rpc/comet/json/event-data.js";
import { ResultTexts } from "../../../../node/rpc/comet/json/result-texts.js";
import type { EventReceiver } from "../../../../node/rpc/comet/route.js";
import { SubscriptionHub } from "../../../../node/rpc/comet/subscriptions.js";
import { type CommittedBlock, EventBus } from "../../../../node/view/event-bus.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { turnsOf } from "../../../helpers/effort/turns.js";
import { ALICE, signLegacy } from "../evm/fixture.js";

const COUNT = 12;
/** Creates nothing; the gas of its code is an odd number, and so is the fee. */
const ODD_GAS_CODE = "0x60005f5f";

let chain: CometTestChain;
let committed: CommittedBlock;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
  const raws: string[] = [];
  for (let nonce = 0; nonce < COUNT; nonce++) {
    const fields = { nonce, gasPrice: 25_000_001n, gasLimit: 100_000n };
    const { address: to } = new Wallet(AbiCoder.defaultAbiCoder().encode(["uint256"], [nonce + 1]));
    const kind = nonce % 3 === 0 ? { to, value: 1n } : { data: ODD_GAS_CODE };
    raws.push(await signLegacy(ALICE, { ...fields, ...kind }));
  }
  ({ committed } = await chain.mine(raws));
});

afterAll(() => chain.close());

/** Subscribes by as many clients as it takes. @returns the hub, and what tells it of the block */
function hubOf(queries: readonly string[], onPush: () => void) {
  const bus = new EventBus((error) => {
    throw error;
  });
  let head = chain.chain.view.genesis();
  const { view } = chain.ports;
  const ownView = new Proxy(view, {
    get: (target, name) => {
      const own: unknown = name === "head" ? () => head.block.header : Reflect.get(target, name);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
  const log = createLogger({ component: "test", level: "silent" });
  const hub = new SubscriptionHub(
    { ...chain.ports, view: ownView, bus },
    new ResultTexts(view),
    log,
  );
  const routes = new Map(hub.routes());
  const { signal } = new AbortController();
  let connection: EventReceiver | undefined;
  for (const [index, query] of queries.entries()) {
    if (connection === undefined || index % 5 === 0) {
      const push = () => {
        onPush();
        return "sent" as const;
      };
      connection = { push, cutOff: () => undefined, onClose: () => undefined };
    }
    const values = new Arguments({ form: "json", values: new Map([["query", query]]) });
    void routes
      .get("subscribe")
      ?.run(values, { signal, clientAddress: "", client: { requestId: 1, connection } });
  }
  const tell = () => {
    head = committed;
    bus.emit("block", committed);
  };
  return { hub, tell };
}

it("others get their turns between queries that nothing of a transaction matches", async () => {
  const queries = Array.from({ length: 250 }, (_, index) => {
    const recipient = toBech32(parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`));
    return `tm.event='Tx' AND transfer.recipient='${recipient}'`;
  });
  const turnsBeside = async (others: readonly string[]) => {
    let told = 0;
    let onTold = () => {};
    const all = new Promise<void>((resolve) => (onTold = resolve));
    const { hub, tell } = hubOf([...others, "tm.event='Tx'"], () => {
      told += 1;
      if (told === COUNT) onTold();
    });
    const turns = await turnsOf(() => {
      tell();
      return all;
    });
    hub.close();
    return turns;
  };
  const alone = await turnsBeside([]);
  // A slice has three looks at the time.
  expect((await turnsBeside(queries)) - alone).toBeGreaterThan((250 * COUNT) / 4);
});

it("a block is told in one walk over it, fees of both kinds added up on the way", async () => {
  const [first] = committed.block.transactions;
  const [change] = committed.journal.transactions[0]?.changes ?? [];
  if (first === undefined || change === undefined) throw new Error("nothing was mined");
  const cosmosAt = (index: number): MinedCosmosTransaction => ({
    tx: { type: "cosmos", raw: Uint8Array.of(index), hash: first.tx.hash } as never,
    from: first.from,
    index,
    result: { code: 0, codespace: "", log: "", data: new Uint8Array(0), gasUsed: 1n, events: [] },
    changes: [{ ...change, reason: "FEE", amountAtoken: 7n }],
  });
  const places = [0, 3, 4, COUNT + 3];
  let walks = 0;
  const block = {
    ...committed.block,
    get cosmos() {
      walks += 1;
      return places.map(cosmosAt);
    },
  };
  const texts = new ResultTexts(chain.chain.view);
  // Of no block that was looked at before.
  const journal = { ...committed.journal };
  const burned: string[] = [];
  const found: number[] = [];
  for (const event of blockPublications(chain.ports, texts, { ...committed, block, journal })) {
    if (event.kind !== "Tx") continue;
    const values = await event.values();
    const [amount = "", , , treasury = ""] = [
      "amount",
      "burned",
      "proposer_reward",
      "treasury",
    ].map((key) => values.get(`fee_burn.${key}`)?.[0]?.replace("atoken", ""));
    const [own = ""] = values.get("ethereum_tx.txIndex") ?? [];
    burned.push(own === "" ? "cosmos" : (BigInt(amount) - 2n * BigInt(treasury)).toString());
    if (own !== "") found.push(Number(own));
  }
  expect(found).toEqual([...committed.block.transactions.keys()]);
  // Of odd fees the first, third ... burn one more than they give; those at places 0, 3, 4 are odd too.
  let isOdd = false;
  let evm = 0;
  const expected = burned.map((_, place) => {
    const isCosmos = places.includes(place);
    const isOwnOdd = isCosmos || evm++ % 3 !== 0;
    const side = !isOwnOdd ? "0" : isOdd ? "-1" : "1";
    if (isOwnOdd) isOdd = !isOdd;
    return isCosmos ? "cosmos" : side;
  });
  expect(burned).toEqual(expected);
  expect(walks).toBeLessThan(5);
});
