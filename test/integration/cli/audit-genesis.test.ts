/** The auditor's block 0: a chain that begins with other accounts than the genesis file is named. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { createAuditNode } from "../../../cli/audit/audit-node.js";
import { auditExecution } from "../../../cli/audit/execution-audit.js";
import { type Genesis, type GenesisAccount } from "../../../node/settings/genesis.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { stakedGenesis } from "../../helpers/cosmos/module-state.js";

const { signal } = new AbortController();
const FAUCET = parseAddress(`0x${"fa".repeat(20)}`);
const THIEF = parseAddress(`0x${"66".repeat(20)}`);
const MOVED = 10n ** 21n;

type Change = readonly [string, Partial<GenesisAccount>];

function withAccounts(genesis: Genesis, changes: readonly Change[]) {
  const alloc = new Map(genesis.alloc);
  for (const [name, change] of changes) {
    const address = parseAddress(name);
    const none = { balanceAtoken: 0n, code: undefined, storage: new Map() };
    alloc.set(address, { ...none, ...alloc.get(address), ...change });
  }
  return { ...genesis, alloc };
}

/** What an audit of a chain that began with one genesis says to the file of another. */
async function audited(served: Genesis, file: Genesis, from = 1) {
  const chain = await ServedChain.open(served);
  const client = createJsonRpcClient({ url: chain.url, timeoutMs: 240_000 });
  try {
    for (let block = 0; block < 2; block++) await chain.mine([]);
    return await auditExecution({
      node: createAuditNode(client, signal),
      genesis: file,
      from,
      to: 2,
      trustedHash: undefined,
      onProgress: () => undefined,
      signal,
    });
  } finally {
    client.close();
    await chain.close();
  }
}

const kinds: readonly (readonly [string, Genesis])[] = [
  ["without modules", testGenesis(FAUCET)],
  ["with modules", stakedGenesis([40, 60])],
];

describe.each(kinds)("an audit of block 0 on a chain %s", (_, file) => {
  const faucet = file.alloc.get(FAUCET)?.balanceAtoken ?? 0n;
  const { feeCollector } = file.params;

  it("agrees with the genesis file, and looks at block 0 only where it begins there", async () => {
    expect(await audited(file, file)).toMatchObject({ difference: undefined, to: 2, blocks: 2 });
    const thief = withAccounts(file, [[THIEF, { balanceAtoken: MOVED }]]);
    expect((await audited(thief, file, 2)).difference).toBeUndefined();
  });

  it("names coins that another account had, though the sum of all is the file's", async () => {
    const moved = withAccounts(file, [
      [FAUCET, { balanceAtoken: faucet - MOVED }],
      [THIEF, { balanceAtoken: MOVED }],
    ]);
    const report = await audited(moved, file);
    const place = { height: 0, transaction: undefined, field: "stateRoot" };
    expect(report).toMatchObject({ difference: place, to: 0, blocks: 0 });
    expect(report.difference?.chain).not.toBe(report.difference?.audit);
  });

  it("names code, storage and accounts that the file does not have", async () => {
    const slot = `0x${"00".repeat(31)}01` as never;
    for (const change of [
      [THIEF, { balanceAtoken: 0n }],
      [THIEF, { code: "0x60006000f3" }],
      [feeCollector, { storage: new Map([[slot, 5n]]) }],
    ] as const) {
      const { difference } = await audited(withAccounts(file, [change]), file);
      expect(difference).toMatchObject({ height: 0, field: "stateRoot" });
    }
  });

  it("names rules and validators that the file does not have", async () => {
    const others = { ...file, params: { ...file.params, maxBytes: file.params.maxBytes + 1 } };
    const { difference } = await audited(others, file);
    expect(difference).toMatchObject({ height: 0, field: "mixHash" });
    const later = { ...file, genesisTimeMs: file.genesisTimeMs + 5_000 };
    expect((await audited(later, file)).difference?.height).toBe(0);
  });
});
