/** How far a network is, as its peers tell: what few of them say alone is nobody's alarm. */
import { describe, expect, it } from "@jest/globals";
import { networkHeight } from "../../../node/p2p/peers/network-height.js";

describe("the height of a network", () => {
  it.each([
    ["nobody is connected", [], 0],
    ["nobody has said anything yet", [0, 0], 0],
    // Whoever decides a height has the one before it.
    ["one peer tells it", [101], 100],
    ["a peer has not said anything", [0, 101], 100],
    ["half of the peers are ahead", [101, 51], 100],
    ["one of three lags behind", [101, 102, 7], 100],
    ["one of three names a height that nobody else knows", [101, 102, 2 ** 52], 101],
    ["two of five do", [2 ** 52, 2 ** 52, 101, 102, 103], 102],
    ["the network has not decided anything", [1, 1, 1], 0],
  ])("%s", (_what, deciding, height) => {
    expect(networkHeight(deciding)).toBe(height);
  });
});
