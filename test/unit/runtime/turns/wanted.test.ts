/** Work that several wait for. */
import { describe, expect, it } from "@jest/globals";
import { endlessSignal, ownerOf } from "../../../../runtime/process/work-owner.js";
import { Wanted } from "../../../../runtime/turns/wanted.js";

describe("work that several wait for", () => {
  it("ends when nobody is left, for the reason of who came first", () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const wanted = new Wanted([first.signal, second.signal]);
    second.abort(new Error("of the second"));
    expect(wanted.signal.aborted).toBe(false);
    first.abort(new Error("of the first"));
    expect(wanted.signal.reason).toEqual(new Error("of the first"));
  });

  it("waits in the line of the first of them who has one", () => {
    const [first, second] = [{ client: "10.0.0.1" }, { client: "10.0.0.2" }];
    const nobodys = new AbortController().signal;
    const wanted = new Wanted([nobodys, endlessSignal(first), endlessSignal(second)]);
    expect(ownerOf(wanted.signal)).toBe(first);
    wanted.add(endlessSignal(second));
    expect(ownerOf(wanted.signal)).toBe(first);
  });
});
