/** The gas price that is told who asks for one, by the node's settings. */
import { expect, it } from "@jest/globals";
import { APP_FILE, suggestedGasPriceAtoken } from "../../../../node/settings/config.js";
import { loadConfig } from "../../../../runtime/config/config.js";

const suggested = (env: Readonly<Record<string, string>>) =>
  suggestedGasPriceAtoken(loadConfig({ home: "/nonexistent", env }, APP_FILE));

it("is what the settings say, and never one that the node's pool refuses", () => {
  expect(suggested({})).toBe(25_000_000n);
  expect(suggested({ CAUSEWAY_APP_MINIMUM_GAS_PRICES: "30000000.5atoken" })).toBe(30_000_001n);
});
