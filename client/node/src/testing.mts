// SPDX-License-Identifier: BSD-2-Clause
export type * from "./testing.js";
export { startDaemon, startFake } from "./testing.js";
