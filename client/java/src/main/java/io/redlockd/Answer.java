// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.util.List;
import java.util.Map;

/**
 * The answer to {@link RedlockClient#ask}.
 *
 * @param fields the fields of its last line
 * @param rows the fields of each row
 */
public record Answer(Map<String, String> fields, List<Map<String, String>> rows) {
}
