/** Proxies that keep their implementation otherwise than most: their code changes as noticeably. */
import { afterEach, expect, it } from "@jest/globals";
import { getCreateAddress, Interface } from "ethers";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { readTokenStates } from "../../../../ledger/assets/token-state.js";
import { listDeposits } from "../../../../ledger/deposits/deposit-queries.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { until } from "../../../helpers/until.js";
import { contractAt, createdAt, ISSUER, TokenBench, TOKENS } from "../token-bench.js";

const ABI = new Interface([
  "function upgradeTo(address)",
  "function mint(address,uint256)",
  "function transfer(address,uint256)",
]);

/** What creates the token, and is told of other code. */
const UPGRADED = createdAt(8);
const ofBeacon = parseAddress(getCreateAddress({ from: UPGRADED, nonce: 1 }).toLowerCase());

let bench: TokenBench;
afterEach(() => bench.close());

const call = (to: Address, method: string, args: readonly unknown[]) => {
  return { to, data: ABI.encodeFunctionData(method, args) };
};

it.each([
  ["in a slot of its own", "OlderProxy", UPGRADED],
  ["at a beacon", "Beacon", ofBeacon],
] as const)("is paused when code that it has %s becomes other code", async (_, source, proxy) => {
  const listed = [...TOKENS, { symbol: "OLDER", contractAddress: proxy, decimals: 6 }];
  bench = await TokenBench.open(undefined, listed);
  await bench.watch(listed);
  await bench.deploy();
  const alice = await bench.register("alice");
  await bench.mine([
    { data: compileFixture("DepositTokens.sol")[source]?.bytecode ?? "0x" },
    call(UPGRADED, "upgradeTo", [contractAt("PlainToken")]),
  ]);
  await bench.mine([
    call(proxy, "mint", [ISSUER.address, 5_000n]),
    call(proxy, "mint", [alice, 70n]),
  ]);
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
  const statuses = async () => {
    const found = await listDeposits(bench.database, { afterSeq: 0, limit: 10 });
    return found.map(({ amountUnits, status }) => `${amountUnits} ${status}`);
  };
  expect(await statuses()).toEqual(["70 credited"]);
  await bench.mine([
    call(UPGRADED, "upgradeTo", [contractAt("SecondPlain")]),
    call(proxy, "transfer", [alice, 1_000n]),
  ]);
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
  const isPaused = async () => (await readTokenStates(bench.database)).get("OLDER")?.isPaused;
  await until(async () => (await isPaused()) === true, { timeoutMs: 20_000, what: "it stands" });
  expect(await statuses()).toEqual(["70 credited", "990 held"]);
});
