/** Whose balance `causeway audit balance` is asked for: either spelling, rightly written. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { getAddress, getBytes } from "ethers";
import { runAuditBalance } from "../../../../cli/commands/balance-proof.js";
import { encodeGenesis } from "../../../../node/settings/genesis.js";
import { testGenesis } from "../../../helpers/chains/execution-chain.js";

const HEX = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
const ACCOUNT = bech32.encode("addr", bech32.toWords(getBytes(HEX)));
/** Nobody listens there. */
const NOWHERE = "127.0.0.1:1";

let home: string;
beforeAll(() => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-audit-address-"));
  fs.writeFileSync(path.join(home, "genesis.json"), encodeGenesis(testGenesis(getAddress(HEX))));
});
afterAll(() => fs.rmSync(home, { recursive: true, force: true }));

async function refusalOf(address: string): Promise<string> {
  const said: string[] = [];
  const { signal } = new AbortController();
  const print = (line: string) => void said.push(line);
  const context = { home, portOffset: 0, json: false, env: {}, signal, print };
  const genesis = path.join(home, "genesis.json");
  const options = {
    address,
    height: "head",
    node: `http://${NOWHERE}`,
    consensus: `http://${NOWHERE}`,
    genesis,
  };
  expect(await runAuditBalance(context, options, print)).toBe(2);
  return said.join("\n");
}

it.each([HEX, getAddress(HEX), ACCOUNT, ACCOUNT.toUpperCase()])(
  "is asked of the node: %s",
  async (address) => {
    expect(await refusalOf(address)).toContain(NOWHERE);
  },
);

it.each([
  ["a wrong checksum", getAddress(HEX).replace("aA", "Aa")],
  ["a mistyped letter", `${ACCOUNT.slice(0, -1)}${ACCOUNT.endsWith("q") ? "p" : "q"}`],
  ["an operator's", bech32.encode("addrvaloper", bech32.toWords(getBytes(HEX)))],
  ["too short", HEX.slice(0, -1)],
])("is refused before anybody is asked, as it is %s", async (_what, address) => {
  expect(await refusalOf(address)).toBe(`audit: <address> does not take "${address}"; see --help.`);
});
