// SPDX-License-Identifier: BSD-2-Clause
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much JSON as the lines of an adapter need. Numbers are doubles, or longs if they are whole. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(String line) {
        return (Map<String, Object>) new Json(line).value();
    }

    private char next() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at);
    }

    private boolean accepts(char c) {
        if (next() != c) {
            return false;
        }
        at++;
        return true;
    }

    private Object value() {
        char c = next();
        if (accepts('{')) {
            Map<String, Object> found = new LinkedHashMap<>();
            while (!accepts('}')) {
                String key = (String) value();
                accepts(':');
                found.put(key, value());
                accepts(',');
            }
            return found;
        }
        if (accepts('[')) {
            List<Object> found = new ArrayList<>();
            while (!accepts(']')) {
                found.add(value());
                accepts(',');
            }
            return found;
        }
        return c == '"' ? string() : word();
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c == '\\') {
                c = text.charAt(++at);
                if (c == 'u') {
                    c = (char) Integer.parseInt(text, at + 1, at + 5, 16);
                    at += 4;
                } else {
                    int known = "nrtbf".indexOf(c);
                    c = known < 0 ? c : "\n\r\t\b\f".charAt(known);
                }
            }
            out.append(c);
        }
        at++;
        return out.toString();
    }

    private Object word() {
        int from = at;
        while (at < text.length() && ",]} ".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(from, at);
        return switch (word) {
            case "null" -> null;
            case "true" -> true;
            case "false" -> false;
            default -> word.matches("-?[0-9]{1,18}") ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
        };
    }

    /** A value as JSON, in ASCII. */
    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            List<String> parts = new ArrayList<>();
            map.forEach((key, one) -> parts.add(write(key) + ":" + write(one)));
            return "{" + String.join(",", parts) + "}";
        }
        if (value instanceof List<?> list) {
            return "[" + String.join(",", list.stream().map(Json::write).toList()) + "]";
        }
        if (!(value instanceof String text)) {
            return String.valueOf(value);
        }
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c < ' ' || c > '~' || c == '"' || c == '\\') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
