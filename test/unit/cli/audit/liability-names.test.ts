/** Names of customers' files on disks that do not tell capitals from small letters. */
import { expect, it } from "@jest/globals";
import { liabilityFileNames } from "../../../../cli/audit/reserves/liability-file.js";

const named = (...ids: readonly (readonly [string, string])[]) => {
  const leaves = ids.map(([asset, customerId]) => ({ asset, customerId }));
  return leaves.map(liabilityFileNames(leaves));
};

it("stay as they are where they differ in more than capitals", () => {
  expect(named(["TOKEN", "Bob"], ["TOKEN", "alice"], ["GOLD", "Bob"])).toEqual([
    "TOKEN-Bob.json",
    "TOKEN-alice.json",
    "GOLD-Bob.json",
  ]);
});

it("are others also in small letters, whatever customers and assets are called", () => {
  const ids = [
    ["GOLD", "Bob"],
    ["GOLD", "bob"],
    ["GOLD", "boB"],
    ["gold", "bob"],
    ["GOLD", "alice:J"],
    ["GOLD", "alice:j"],
    ["GOLD", "Carl"],
  ] as const;
  const names = named(...ids);
  expect(names.at(-1)).toBe("GOLD-Carl.json");
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length);
  expect(names.map((name) => decodeURIComponent(name))).toEqual(
    ids.map(([asset, customerId]) => `${asset}-${customerId}.json`),
  );
});
