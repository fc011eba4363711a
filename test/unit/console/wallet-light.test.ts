/** The hot wallets as the console shows them: the light on its first page, and theirs. */
import { expect, it } from "@jest/globals";
import { treasuryRoutes } from "../../../console/pages/treasury.js";
import { overviewRoutes } from "../../../console/pages/overview.js";
import type { PageContext } from "../../../console/pages/context.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { PageError } from "../../../web/errors.js";
import { shownPage } from "../../helpers/pages/console-page.js";
import { all, textOf } from "../../helpers/pages/html.js";

const wallet = (label: string, status: string, frozen: boolean) => ({
  address: `0x${"70".repeat(20)}`,
  label,
  status,
  since: "2026-01-01T00:00:00Z",
  reason: "",
  balanceAtoken: null,
  balanceHeight: null,
  reservedAtoken: "0",
  freeAtoken: "0",
  nextNonce: null,
  openSlots: 0,
  oldestSlot: null,
  frozen,
  frozenReason: frozen ? "operator: it leaked" : null,
  leaseHolder: null,
});

/** The light's words, where only the wallets are told of. */
async function lightOf(wallets: readonly unknown[]): Promise<string | undefined> {
  const context = {
    parts: [],
    evm: { getBlockHeader: async () => undefined },
    clock: systemClock,
  } as unknown as PageContext;
  const answer = ({ path }: ApiQuestion<unknown>) => {
    if (path !== "/v1/wallets") throw new PageError("UNAVAILABLE", "no answer");
    return { wallets };
  };
  const { root } = await shownPage(overviewRoutes(context), "/", { role: "viewer", answer });
  return all(root, "li")
    .map((light) => textOf(light))
    .find((text) => text.startsWith("Wallets"));
}

it("is red for one that is frozen, and not for one that is retired and nobody signs for", async () => {
  const good = await lightOf([wallet("hot", "active", false)]);
  expect(good).toMatch(/^Wallets well ?1$/);
  const retired = await lightOf([
    wallet("hot", "active", false),
    wallet("leaked", "retired", true),
  ]);
  expect(retired).toMatch(/^Wallets well ?2$/);
  for (const status of ["active", "draining"]) {
    const frozen = await lightOf([wallet("leaked", "retired", true), wallet("hot", status, true)]);
    expect(frozen).toMatch(/^Wallets failed ?Frozen: hot$/);
  }
});

it("is red where no active wallet has a key that somebody holds, and not by an API of before", async () => {
  const keyless = { ...wallet("hot", "active", false), keyHeld: false };
  const held = { ...wallet("other", "active", false), keyHeld: true };
  const nobody = /^Wallets failed ?No active wallet has its key/;
  expect(await lightOf([keyless])).toMatch(nobody);
  expect(await lightOf([keyless, { ...held, status: "draining" }])).toMatch(nobody);
  expect(await lightOf([keyless, held])).toMatch(/^Wallets look at it ?No key: hot$/);
  expect(await lightOf([{ ...keyless, status: "retired" }, held])).toMatch(/^Wallets well ?2$/);
  expect(await lightOf([wallet("hot", "active", false)])).toMatch(/^Wallets well ?1$/);
});

it("is explained by the page that it leads to, which names the wallet without a key", async () => {
  const answers: Readonly<Record<string, unknown>> = {
    "/v1/assets": { assets: [] },
    "/v1/figures": { coins: [], depositDelays: [], withdrawalLatencies: [] },
  };
  const rowsOf = async (wallets: readonly unknown[]) => {
    const answer = ({ path }: ApiQuestion<unknown>) => answers[path] ?? { wallets };
    const { root } = await shownPage(treasuryRoutes(), "/wallets", { role: "viewer", answer });
    const rows = all(root, "tr").slice(1);
    return rows.map((row) => textOf(all(row, "td")[2] ?? row));
  };
  // Its lane has a worker all the same.
  const keyless = { ...wallet("hot", "active", false), keyHeld: false, leaseHolder: "worker-1" };
  const held = { ...wallet("other", "active", false), keyHeld: true };
  expect(await rowsOf([keyless, held, { ...keyless, status: "retired" }])).toEqual([
    "active No key",
    "active",
    "retired",
  ]);
  expect(await rowsOf([wallet("of an API of before", "active", false)])).toEqual(["active"]);
});
