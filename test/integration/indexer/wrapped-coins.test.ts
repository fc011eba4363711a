/** Tokens that hold coins, as an index tells of them, and whoever makes their logs look like others. */
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { Interface } from "ethers";
import { rebuildIndex } from "../../../indexer/maintenance/commands.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { call, IndexerStage, type Message } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";

const abi = new Interface([
  "function deposit() payable",
  "function withdraw(uint256)",
  "function transfer(address,uint256)",
  "function prepare(address) payable",
  "function strike(address)",
  "function release(address,uint256)",
]);
const made = compileFixture("WrappedCoins.sol");
const bytecodeOf = (name: string) => made[name]?.bytecode ?? "0x";

let stage: IndexerStage;
let ambiguous = "";

let port = 0;

beforeAll(async () => {
  stage = await IndexerStage.open();
  port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  ambiguous = await stage.deploy(bytecodeOf("Ambiguous"));
});

afterAll(async () => {
  await stage.close();
});

let token = "";
const asEchoing = () => stage.deploy(bytecodeOf("EchoingWrapper"));

beforeEach(async () => {
  token = await stage.deploy(bytecodeOf("Wrapper"));
});

async function mine(...messages: readonly Message[]) {
  expect(await stage.mine(...messages)).toEqual(messages.map(() => 1));
}

/** The newest point of the history of what `holder` has. */
async function lastPointOf(holder: string) {
  const [point] = await stage.all(`/addresses/${holder}/balance-history?asset=${token}`);
  return [point.height, point.balance];
}

/** How the token moved, the oldest first: block, sides and units. */
async function movesOf() {
  const moves = await stage.all(`/tokens/${token}/transfers?order=asc`);
  return moves.map(({ kind, height, from, to, amount }) => [kind, height, from, to, amount]);
}

/** What checking all that is there came to. */
async function isSound() {
  await stage.indexed();
  const { corrections } = (await stage.get("/status")).status;
  const { isConsistent, holders } = (await stage.get(`/tokens/${token}`)).token;
  return { corrections, isConsistent, holders };
}

const SOUND = { corrections: 0, isConsistent: true };

it("a withdrawal beside as much that is sent to nobody counts twice, in a later block", async () => {
  await mine({ ...call(ambiguous, abi, "prepare", token), value: 2n });
  // Only the tables know it then.
  await stage.indexed();
  await mine(call(ambiguous, abi, "strike", token));
  const { height } = stage;
  expect(await isSound()).toEqual({ ...SOUND, holders: 0 });
  expect(await lastPointOf(ambiguous)).toEqual([height, "0"]);
  expect(await movesOf()).toEqual([
    ["erc20", height - 1, null, ambiguous, "2"],
    ["erc20", height, ambiguous, null, "1"],
    ["erc20", height, ambiguous, null, "1"],
  ]);
});

it("the same in the block of the deposit, and twice for one that was struck before", async () => {
  await mine(
    { ...call(ambiguous, abi, "prepare", token), value: 5n },
    call(ambiguous, abi, "strike", token),
  );
  await stage.indexed();
  await mine(call(ambiguous, abi, "strike", token));
  const { height } = stage;
  expect(await isSound()).toEqual({ ...SOUND, holders: 1 });
  expect(await lastPointOf(ambiguous)).toEqual([height, "1"]);
});

it("a token that tells each by a Transfer as well has one movement of each", async () => {
  token = await asEchoing();
  const holder = stage.faucet.address.toLowerCase();
  await mine({ ...call(token, abi, "deposit"), value: 10n }, call(token, abi, "withdraw", 4n));
  await mine(call(token, abi, "withdraw", 1n));
  const { height } = stage;
  expect(await isSound()).toEqual({ ...SOUND, holders: 1 });
  expect(await movesOf()).toEqual([
    ["erc20", height - 1, null, holder, "10"],
    ["erc20", height - 1, holder, null, "4"],
    ["erc20", height, holder, null, "1"],
  ]);
});

it("a rebuild tells the same, in however few batches it reads the chain", async () => {
  await mine({ ...call(ambiguous, abi, "prepare", token), value: 2n });
  await mine(call(ambiguous, abi, "strike", token));
  await stage.indexed();
  const told = await movesOf();
  await rebuildIndex(stage.commandOptions());
  await stage.indexed();
  expect(await movesOf()).toEqual(told);
  expect(told).toHaveLength(3);
});

it("a contract that logs deposits and tells no balances is no token, and nobody has any of it", async () => {
  const escrow = await stage.deploy(bytecodeOf("Escrow"));
  const [buyer, seller] = [stage.faucet.address.toLowerCase(), `0x${"5e".repeat(20)}`];
  await mine({ ...call(escrow, abi, "deposit"), value: 5n });
  await mine(call(escrow, abi, "release", seller, 5n));
  await mine({ ...call(token, abi, "deposit"), value: 3n });
  await stage.indexed();
  for (const account of [buyer, seller]) {
    const held: { asset: string }[] = await stage.all(`/addresses/${account}/balances`);
    expect(held.map(({ asset }) => asset)).not.toContain(escrow);
    const { tokens } = (await stage.get(`/addresses/${account}`)).address;
    expect(tokens).toBe(held.filter(({ asset }) => asset !== "TOKEN").length);
    expect(await stage.all(`/addresses/${account}/balance-history?asset=${escrow}`)).toEqual([]);
    expect(await stage.all(`/addresses/${account}/statement?asset=${escrow}`)).toEqual([]);
  }
  const listed: { address: string }[] = await stage.all("/tokens");
  expect(listed.map(({ address }) => address)).not.toContain(escrow);
  expect(await stage.refusal(`/tokens/${escrow}`)).toMatchObject({ status: 404 });
  expect(await stage.all(`/tokens/${escrow}/holders`)).toEqual([]);
  // A wrapped coin with deposits alone is one: it says what everybody has.
  expect(listed.map(({ address }) => address)).toContain(token);
  expect((await stage.get(`/tokens/${token}`)).token).toMatchObject({
    standard: "erc20",
    holders: 1,
  });
  const [holder] = await stage.all(`/tokens/${token}/holders`);
  expect(holder).toMatchObject({ address: buyer, amount: "3", method: "logs" });
});

it("an index of an earlier release begins with the next deposit", async () => {
  await stage.indexed();
  await stage.stopIndexers();
  await stage.sql.query("DROP TABLE indexer.wrapped_coin");
  stage.launch(port);
  await mine({ ...call(ambiguous, abi, "prepare", token), value: 2n });
  await stage.indexed();
  await mine(call(ambiguous, abi, "strike", token));
  expect((await isSound()).isConsistent).toBe(true);
  expect(await lastPointOf(ambiguous)).toEqual([stage.height, "0"]);
});
