/** The script that hands a call to a wallet, run with a wallet that answers as wallets do (EIP-1193). */
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { expect, it } from "@jest/globals";

const SCRIPT = path.join(process.cwd(), "explorer", "assets", "wallet.mjs");
const HASH = `0x${"ab".repeat(32)}`;
const CALL = { to: "0xTo", data: "0xdata", value: "0x1", chain: "0x1b1c" };

/** Presses the button beside a wallet that is on the first chain, and on the second once it is asked for accounts. */
async function press(first: string, second = first) {
  let chain = first;
  let onClick: (() => void) | undefined;
  const sent: unknown[] = [];
  const request = async ({ method, params }: { method: string; params?: readonly unknown[] }) => {
    if (method === "eth_chainId") return chain;
    if (method === "eth_requestAccounts") {
      // Who connects chooses the network in the wallet's window.
      chain = second;
      return ["0xFrom"];
    }
    sent.push(params?.[0]);
    return HASH;
  };
  const said: string[] = [];
  const result = { className: "", textContent: "", append: () => undefined };
  const done = new Promise<void>((resolve) => {
    const button = {
      hidden: true,
      addEventListener: (_name: string, listener: () => void) => {
        onClick = listener;
      },
      set disabled(isDisabled: boolean) {
        if (isDisabled) return;
        said.push(result.className, result.textContent);
        resolve();
      },
    };
    const words = { otherChain: "switch to", sent: "sent", refused: "refused" };
    const part = {
      dataset: { ...CALL, ...words },
      querySelector: (name: string) => (name === "[data-send]" ? button : result),
    };
    const document = { querySelectorAll: () => [part], createElement: () => ({}) };
    const text = fs.readFileSync(SCRIPT, "utf8");
    vm.runInNewContext(text, { window: { ethereum: { request } }, document });
  });
  onClick?.();
  await done;
  return { sent, said };
}

it("sends a call on the page's chain alone, which it names to the wallet", async () => {
  const { to, data, value, chain } = CALL;
  const { sent } = await press(chain);
  expect(sent).toEqual([{ from: "0xFrom", to, data, value, chainId: chain }]);
});

it("sends nothing where the wallet is on another chain, also by the time it has given an account", async () => {
  for (const [first, second] of [
    ["0x1", "0x1"],
    [CALL.chain, "0x1"],
  ] as const) {
    const { sent, said } = await press(first, second);
    expect({ second, sent, said }).toEqual({
      second,
      sent: [],
      said: ["refused", "switch to 6940"],
    });
  }
  expect((await press("0x1", CALL.chain)).sent).toHaveLength(1);
});
