/**
 * Tells the tests of a file what is forced to disk: their global `onForced`, if there is one, is
 * called with the file descriptor after each fsync and fdatasync of Node's, whoever asks for it.
 */
import fs from "node:fs";
import { open } from "node:fs/promises";
import kept from "../runner/kept-modules.cjs";
import OneRealmEnvironment from "../runner/node-environment.mjs";

export default class ForcedFilesEnvironment extends OneRealmEnvironment {
  #undo = [];

  async setup() {
    await super.setup();
    const handle = await open("/", "r");
    await handle.close();
    this.#watch(fs, "fsyncSync", (_, fd) => fd);
    this.#watch(fs, "fdatasyncSync", (_, fd) => fd);
    const prototype = Object.getPrototypeOf(handle);
    this.#watch(prototype, "sync", (self) => self.fd);
    this.#watch(prototype, "datasync", (self) => self.fd);
    await kept.readBuiltinsAnew();
  }

  async teardown() {
    for (const step of this.#undo) step();
    await kept.readBuiltinsAnew();
    await super.teardown();
  }

  #watch(owner, name, descriptorOf) {
    const original = owner[name];
    const told = (fd) => globalThis.onForced?.(fd);
    owner[name] = function forced(...parameters) {
      const fd = descriptorOf(this, parameters[0]);
      const result = original.apply(this, parameters);
      if (result === undefined) return told(fd);
      return result.then(() => told(fd));
    };
    this.#undo.push(() => {
      owner[name] = original;
    });
  }
}
