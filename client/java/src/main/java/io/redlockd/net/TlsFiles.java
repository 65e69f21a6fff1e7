// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/**
 * Files in PEM. Null: what REDLOCK_TLS_CA, REDLOCK_TLS_CERT, REDLOCK_TLS_KEY and REDLOCK_TLS_NAME say, else what Java trusts. The key is in PKCS #8
 * ("BEGIN PRIVATE KEY"), or an RSA key in PKCS #1.
 */
public record TlsFiles(Path ca, Path cert, Path key, String serverName) {
    private static final Pattern KEY = Pattern.compile("-----BEGIN (RSA )?PRIVATE KEY-----([^-]*)-----END");
    /** What stands before an RSA key of PKCS #1 in PKCS #8: its version and its algorithm. */
    private static final byte[] RSA = {2, 1, 0, 0x30, 13, 6, 9, 0x2a, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xf7, 13, 1, 1, 1, 5, 0};

    /** What the environment says where nothing was given. */
    public TlsFiles orEnvironment() {
        return new TlsFiles(or(ca, "REDLOCK_TLS_CA"), or(cert, "REDLOCK_TLS_CERT"), or(key, "REDLOCK_TLS_KEY"),
                serverName != null ? serverName : Place.environment("REDLOCK_TLS_NAME"));
    }

    private static Path or(Path given, String variable) {
        String value = Place.environment(variable);
        return given != null || value == null ? given : Path.of(value);
    }

    /** The client's side of a connection to a place. */
    SSLEngine engine(Place place) throws IOException {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys(), trust(), null);
            SSLEngine engine = context.createSSLEngine(serverName != null ? serverName : place.host(), place.port());
            engine.setUseClientMode(true);
            SSLParameters parameters = engine.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS"); // the certificate must be for this name
            parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
            engine.setSSLParameters(parameters);
            return engine;
        } catch (GeneralSecurityException wrong) {
            throw new IOException("TLS: " + wrong.getMessage(), wrong);
        }
    }

    private TrustManager[] trust() throws GeneralSecurityException, IOException {
        if (ca == null) {
            return null;
        }
        KeyStore store = emptyStore();
        int number = 0;
        for (Certificate certificate : certificates(ca)) {
            store.setCertificateEntry("ca" + number++, certificate);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }

    private KeyManager[] keys() throws GeneralSecurityException, IOException {
        if (cert == null) {
            return null;
        }
        KeyStore store = emptyStore();
        store.setKeyEntry("client", privateKey(key != null ? key : cert), new char[0], certificates(cert).toArray(new Certificate[0]));
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, new char[0]);
        return factory.getKeyManagers();
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Collection<? extends Certificate> certificates(Path path) throws GeneralSecurityException, IOException {
        try (InputStream in = Files.newInputStream(path)) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in);
        }
    }

    private static PrivateKey privateKey(Path path) throws GeneralSecurityException, IOException {
        Matcher found = KEY.matcher(Files.readString(path, StandardCharsets.US_ASCII));
        if (!found.find()) {
            throw new IOException(path + " has no private key in PKCS #8: make one by openssl pkcs8 -topk8 -nodes");
        }
        byte[] der = Base64.getMimeDecoder().decode(found.group(2));
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(found.group(1) == null ? der : pkcs8(der));
        for (String algorithm : new String[] {"RSA", "EC", "EdDSA"}) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(spec);
            } catch (GeneralSecurityException another) {
                continue;
            }
        }
        throw new IOException(path + ": the key is neither RSA nor EC nor EdDSA");
    }

    /** An RSA key of PKCS #1 as one of PKCS #8. */
    private static byte[] pkcs8(byte[] key) {
        return der(0x30, join(RSA, der(4, key)));
    }

    private static byte[] der(int type, byte[] content) {
        int length = content.length;
        byte[] head = length < 0x80 ? new byte[] {(byte) type, (byte) length}
                : new byte[] {(byte) type, (byte) 0x82, (byte) (length >> 8), (byte) length};
        return join(head, content);
    }

    private static byte[] join(byte[] one, byte[] other) {
        byte[] both = java.util.Arrays.copyOf(one, one.length + other.length);
        System.arraycopy(other, 0, both, one.length, other.length);
        return both;
    }
}
