/** "Verify in this browser" where the browser has nothing to check with: it says so, and refutes nothing. */
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { expect, it } from "@jest/globals";

const ASSETS = path.join(process.cwd(), "explorer", "assets");

/** What a page shows in one place. */
interface Place {
  className: string;
  text: string;
}

/** A page with the button and the form, its script run to its end over a browser's WebCrypto. */
async function opened(crypto: unknown) {
  const place = () => {
    const said: Place = { className: "", text: "" };
    const replaceChildren = (text: string) => {
      said.text = text;
    };
    return Object.assign(said, { replaceChildren, append: () => undefined });
  };
  const button = { hidden: true, addEventListener: () => undefined };
  const [answer, pinned] = [place(), place()];
  const words = { unpinned: "no header", unable: "nothing to check with" };
  const control = {
    dataset: { verify: "account", url: "/proof/address/0xab", ...words },
    querySelector: (name: string) => (name === "[data-start]" ? button : answer),
  };
  const form = {
    hidden: true,
    isAsking: false,
    dataset: { pin: "chain_6940-1", ...words },
    elements: {},
    querySelector: (name: string) =>
      name === "[data-result]" ? pinned : { addEventListener: () => undefined },
    addEventListener: () => {
      form.isAsking = true;
    },
    replaceChildren: () => undefined,
  };
  const document = {
    querySelectorAll: (name: string) => [name === "[data-verify]" ? control : form],
    createTextNode: (text: string) => text,
    createElement: () => ({ childElementCount: 0 }),
  };
  const localStorage = { getItem: () => null };
  const globals = { document, localStorage, crypto, TextEncoder, Uint8Array, atob };
  const context = vm.createContext(globals);
  const modules = new Map<string, vm.SourceTextModule>();
  const load = (file: string): vm.SourceTextModule => {
    const known = modules.get(file);
    if (known !== undefined) return known;
    const text = fs.readFileSync(file, "utf8");
    const loaded = new vm.SourceTextModule(text, { context, identifier: file });
    modules.set(file, loaded);
    return loaded;
  };
  const script = load(path.join(ASSETS, "verify.mjs"));
  await script.link((specifier, { identifier }) =>
    load(path.resolve(path.dirname(identifier), specifier)),
  );
  await script.evaluate();
  const shown = ({ className, text }: Place) => ({ className, text });
  return {
    hasButton: !button.hidden,
    answer: shown(answer),
    asksForHeader: form.isAsking,
    hasForm: !form.hidden,
    pinned: shown(pinned),
  };
}

const UNABLE = {
  className: "refused",
  text: expect.stringMatching(/^nothing to check with .*(digest|unknown)/),
};

it("offers to check where the browser can", async () => {
  expect(await opened(globalThis.crypto)).toEqual({
    hasButton: true,
    answer: { className: "", text: "" },
    asksForHeader: true,
    hasForm: true,
    pinned: { className: "", text: "no header" },
  });
});

it.each([
  ["has no WebCrypto, as over http", {}],
  [
    "knows no Ed25519",
    {
      subtle: {
        digest: crypto.subtle.digest.bind(crypto.subtle),
        importKey: () => Promise.reject(new DOMException("unknown", "NotSupportedError")),
      },
    },
  ],
])("says that nothing is refuted where the browser %s", async (_what, crypto) => {
  expect(await opened(crypto)).toEqual({
    hasButton: false,
    answer: UNABLE,
    asksForHeader: false,
    hasForm: true,
    pinned: UNABLE,
  });
});
