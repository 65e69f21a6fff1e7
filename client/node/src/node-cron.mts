// SPDX-License-Identifier: BSD-2-Clause
export type * from "./node-cron.js";
export { runCoordinator } from "./node-cron.js";
