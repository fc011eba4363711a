/** A person's word about a token's code while its contract goes on changing: it is about what was told. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import {
  acceptCode,
  readTokenStates,
  stoodStillAfter,
  type TokenState,
} from "../../../ledger/assets/token-state.js";
import { listEvents } from "../../../ledger/events.js";
import { until } from "../../helpers/until.js";
import { callOf, type ContractName, contractAt, TokenBench } from "./token-bench.js";

const { signal } = new AbortController();

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.watch();
  await bench.deploy();
  await stateWhere(({ codeHash }) => codeHash !== undefined, "its code is pinned");
});
afterEach(() => bench.close());

async function stateOf(): Promise<TokenState | undefined> {
  return (await readTokenStates(bench.database)).get("PROXY");
}

async function stateWhere(isSo: (state: TokenState) => boolean, what: string): Promise<void> {
  await until(
    async () => {
      const state = await stateOf();
      return state !== undefined && isSo(state);
    },
    { timeoutMs: 20_000, what },
  );
}

async function upgrade(name: ContractName): Promise<void> {
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [contractAt(name)])]);
  await bench.caughtUp();
}

/** As the command does it. */
async function accept(): Promise<void> {
  const height = await bench.node.blockNumber({ signal });
  const asked = [{ contract: contractAt("UpgradableProxy"), at: height }];
  const [code] = await bench.node.tokenCodes(asked, { signal });
  if (code === undefined) throw new Error("no code");
  await acceptCode(bench.ledger.owner, { ...code, asset: "PROXY", height, by: "ann" });
}

it("is not taken for code that came behind the one that the token stands still for", async () => {
  await upgrade("SecondPlain");
  await stateWhere(({ isPaused }) => isPaused, "it stands still");
  await upgrade("MoodyToken");
  await expect(accept()).rejects.toMatchObject({ code: "INVALID_DECISION" });
  const told = contractAt("MoodyToken").slice(2);
  expect(await stateOf()).toMatchObject({
    isPaused: true,
    reason: expect.stringContaining(told),
    changedBy: "ann",
  });
  await accept();
  expect(await stateOf()).toMatchObject({ isPaused: false });
  const events = await listEvents(bench.database, { afterSeq: 0, limit: 100 });
  expect(events.flatMap(({ type }) => (type.startsWith("token.") ? [type] : []))).toEqual([
    "token.paused",
    "token.paused",
    "token.resumed",
  ]);
});

it("is taken for code that was accepted before, which came back", async () => {
  await upgrade("SecondPlain");
  await stateWhere(({ isPaused }) => isPaused, "it stands still");
  await upgrade("PlainToken");
  await accept();
  expect(await stateOf()).toMatchObject({ isPaused: false });
});

it("is waited for from the block on that the chain came back to, where it lost that of the other code", async () => {
  const after = async () => {
    const [row] = await bench.database.query<{ after: string | null }>(
      `SELECT ${stoodStillAfter("'PROXY'")} AS after`,
    );
    return row?.after;
  };
  expect(await after()).toBeNull();
  const { height: kept } = bench.chain.chain.view.head();
  await bench.mine([]);
  await upgrade("SecondPlain");
  await stateWhere(({ isPaused }) => isPaused, "it stands still");
  expect(Number(await after())).toBeGreaterThanOrEqual(kept + 2);
  bench = await bench.without(kept);
  // Sooner than before.
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [contractAt("SecondPlain")])]);
  for (let block = 0; block < 4; block += 1) await bench.mine([]);
  const { to } = await bench.recover();
  expect(to.height).toBeLessThanOrEqual(kept);
  expect(await after()).toBe(String(to.height + 1));
});
